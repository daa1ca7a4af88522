import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { checkoutFolder } from '../output.ts'

/**
 * Writes a module that runs test files one at a time in one process, so that common imports are loaded once. Each file
 * becomes a suite with its own hooks. Resolves with the path.
 */
export async function writeSharedModule(files: readonly string[], path: string): Promise<string> {
  const named = files.map((file) => [file, pathToFileURL(join(checkoutFolder, file)).href])
  await writeFile(
    path,
    `import { suite } from 'node:test'
for (const [name, url] of ${JSON.stringify(named)}) await suite(name, async () => void (await import(url)))
`,
  )
  return path
}
