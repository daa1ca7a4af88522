import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { openApiDocument } from '@berth/server/openapi/openapi-document.ts'

/** Writes docs/openapi.json from the contract. With `--check` it only reports whether the file is up to date. */
const path = join(import.meta.dirname, '..', 'docs', 'openapi.json')
const text = `${JSON.stringify(openApiDocument(), null, 2)}\n`

if (process.argv.includes('--check')) {
  const committed = await readFile(path, 'utf8').catch(() => '')
  if (committed !== text) {
    console.error('docs/openapi.json is not what the contract says. Run: npm run generate')
    process.exitCode = 1
  }
} else {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, text)
  console.log(`wrote ${path}`)
}
