import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { checkoutFolder } from '../output.ts'

interface BatchOptions {
  readonly count: number
  /** Where the modules of the batches are written. */
  readonly folder: string
}

/**
 * Distributes test files over modules, each of which runs its files one at a time in one process, so that common
 * imports are loaded once. Each file becomes a suite with its own hooks.
 */
export async function writeBatches(
  files: readonly string[],
  { count, folder }: BatchOptions,
): Promise<readonly string[]> {
  const batches = Array.from({ length: Math.min(count, files.length) }, (_, index) => ({
    path: join(folder, `batch-${index + 1}.test.mjs`),
    files: files.filter((_, position) => position % count === index),
  }))
  await Promise.all(batches.map(({ path, files }) => writeFile(path, batchModule(files))))
  return batches.map(({ path }) => path)
}

function batchModule(files: readonly string[]): string {
  const named = files.map((file) => [file, pathToFileURL(join(checkoutFolder, file)).href])
  return `import { suite } from 'node:test'
for (const [name, url] of ${JSON.stringify(named)}) await suite(name, async () => void (await import(url)))
`
}
