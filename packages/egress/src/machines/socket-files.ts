import { lstat, unlink } from 'node:fs/promises'

/** Removes the socket file that a dead process left. Never removes any other kind of file. */
export async function removeStaleSocket(path: string): Promise<void> {
  if (await existsSocket(path)) await unlink(path)
}

/** Whether the socket file exists. Any other kind of file is an error. */
export async function existsSocket(path: string): Promise<boolean> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (found && !found.isSocket()) throw new Error(`${path} exists and is not a socket.`)
  return found !== undefined
}
