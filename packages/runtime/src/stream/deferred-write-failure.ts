import type { Socket } from 'node:net'

type Finish = (error?: Error | null) => void

/**
 * Lets a socket be read to its end when a write to it fails. Node.js destroys such a socket at once, with all that has
 * arrived and was not read: the answer of a server that refuses an upload, for example. Here the socket fails when that is read:
 * `errored` is set before the listeners of `end` that are added later run.
 */
export function deferWriteFailure(socket: Socket): void {
  const deferred = (finish: Finish): Finish => {
    return (error) => {
      if (!error || socket.readableEnded || socket.destroyed) finish(error)
      else socket.prependOnceListener('end', () => finish(error)).once('close', () => finish(error))
    }
  }
  const { _write: write, _writev: writev } = socket
  socket._write = (chunk, encoding, finish) => write.call(socket, chunk, encoding, deferred(finish))
  if (writev) socket._writev = (chunks, finish) => writev.call(socket, chunks, deferred(finish))
}
