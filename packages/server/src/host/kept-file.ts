import { link, open, readFile, rm } from 'node:fs/promises'

/**
 * Reads a small file that is made once, for its owner alone. It appears whole or not at all: whoever is killed while
 * making it leaves nothing that would be taken for it.
 */
export async function readKeptFile(path: string, make: () => string): Promise<string> {
  const known = await readFile(path, 'utf8').catch(unlessMissing)
  if (known !== undefined) return known

  const unfinished = `${path}.${process.pid}`
  try {
    await using file = await open(unfinished, 'w', 0o600)
    await file.writeFile(make())
    await file.sync()
    // Unlike a rename, a link does not replace what another process has made meanwhile.
    await link(unfinished, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(unfinished, { force: true })
  }
  return readFile(path, 'utf8')
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
