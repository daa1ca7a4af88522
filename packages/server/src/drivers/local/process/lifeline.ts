import { connect } from 'node:net'

/*
 * A machine's first process holds a listening socket on which nobody ever accepts. A connection to it waits in the
 * kernel for as long as that process lives and is cut when it ends: so any berth, also one that did not start the
 * machine, is told of its end without asking again and again.
 */

export interface Lifeline {
  /** Settles when the socket's holder has ended; at once when there is none; never after `close`. */
  readonly cut: Promise<void>
  /** Ends the watch, not the holder. */
  close(): void
}

/** Resolves when the connection stands, or cannot. */
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
    // After the connect it is a reset: how the end of the holder shows.
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'ECONNREFUSED' || code === 'ENOENT') resolve({ cut, close })
      else reject(new Error(`the socket ${path} cannot be watched: ${code}`))
    })
  })
}
