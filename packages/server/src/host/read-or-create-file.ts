import { link, open, readFile, rm } from 'node:fs/promises'

/**
 * Reads a small file that is created once and only readable by its owner. Created atomically: a process that is killed
 * while creating it leaves nothing that would be mistaken for it.
 */
export async function readOrCreateFile(path: string, make: () => string): Promise<string> {
  const known = await readFile(path, 'utf8').catch(unlessMissing)
  if (known !== undefined) return known

  const unfinished = `${path}.${process.pid}`
  try {
    await using file = await open(unfinished, 'w', 0o600)
    await file.writeFile(make())
    await file.sync()
    // Unlike rename, link does not replace a file that another process has created meanwhile.
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
