import { lstat, unlink } from 'node:fs/promises'

/** Makes way for a new listener: removes the socket that a dead process left. Nothing but a socket is ever removed. */
export async function removeStaleSocket(path: string): Promise<void> {
  if (await existsSocket(path)) await unlink(path)
}

/** Whether there is a socket; anything else in its place is an error. */
export async function existsSocket(path: string): Promise<boolean> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (found && !found.isSocket()) throw new Error(`${path} is in the way: it is not a socket.`)
  return found !== undefined
}
