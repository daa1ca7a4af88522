import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { commandReference, helpReference } from '../packages/cli/src/client/command-reference.ts'

/** Writes the reference of all commands. With `--check` it only reports files that are not up to date. */
const files = { 'docs/cli-commands.md': commandReference(), 'docs/cli-help.txt': helpReference() }

for (const [name, text] of Object.entries(files)) {
  const path = join(import.meta.dirname, '..', name)
  if (!process.argv.includes('--check')) {
    await writeFile(path, text)
    console.log(`wrote ${path}`)
  } else if ((await readFile(path, 'utf8').catch(() => '')) !== text) {
    console.error(`${name} is not what the commands say. Run: npm run generate`)
    process.exitCode = 1
  }
}
