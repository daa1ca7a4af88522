import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { commandReference } from '../packages/cli/src/client/command-reference.ts'

/** Writes docs/cli-commands.md from the commands. With `--check` it only reports whether the file is up to date. */
const path = join(import.meta.dirname, '..', 'docs', 'cli-commands.md')
const text = commandReference()

if (process.argv.includes('--check')) {
  if ((await readFile(path, 'utf8').catch(() => '')) !== text) {
    console.error('docs/cli-commands.md is not what the commands say. Run: npm run generate')
    process.exitCode = 1
  }
} else {
  await writeFile(path, text)
  console.log(`wrote ${path}`)
}
