import { open, stat, truncate, writeFile } from 'node:fs/promises'

const tailBytes = 8 * 1024
const tailLines = 20
const maxLogBytes = 4 * 1024 * 1024

/** The last lines of a log. Empty if there is none. */
export async function readLastLines(path: string): Promise<string> {
  return (await readTail(path, tailBytes)).trim().split('\n').slice(-tailLines).join('\n')
}

/**
 * Truncates a log that is too large to its end, and returns its previous size. The machine appends, wherever the end
 * is.
 */
export async function shortenLog(path: string): Promise<number> {
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  )
  if (size <= maxLogBytes) return size
  const tail = await readTail(path, tailBytes)
  await truncate(path, 0)
  await writeFile(path, tail, { flag: 'a' })
  return size
}

async function readTail(path: string, bytes: number): Promise<string> {
  const file = await open(path, 'r').catch(() => undefined)
  if (!file) return ''
  try {
    const { size } = await file.stat()
    const start = Math.max(0, size - bytes)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(size, bytes)), 0, undefined, start)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await file.close()
  }
}
