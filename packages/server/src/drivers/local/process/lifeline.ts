import { connect } from 'node:net'

/*
 * A listening socket that a machine's first process holds and never accepts on. A connection to it waits in the kernel
 * while that process lives and is closed when it ends. So any server, including one that did not start the machine,
 * learns of its end without polling.
 */

export interface Lifeline {
  /** Settles when the holder of the socket has ended, immediately if there is none, never after `close`. */
  readonly cut: Promise<void>
  /** Stops watching. The holder keeps running. */
  close(): void
}

/** Resolves when the connection is established or has failed. */
export function watchLifeline(path: string): Promise<Lifeline> {
  const socket = connect(path)
  const { promise: cut, resolve: settleCut } = Promise.withResolvers<void>()
  const close = () => {
    socket.off('close', settleCut)
    socket.destroy()
  }
  socket.once('close', settleCut)
  socket.resume()
  return new Promise((resolve, reject) => {
    socket.once('connect', () => resolve({ cut, close }))
    // After the connection is established, the end of the holder appears as a reset.
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'ECONNREFUSED' || code === 'ENOENT') resolve({ cut, close })
      else reject(new Error(`the socket ${path} cannot be watched: ${code}`))
    })
  })
}
