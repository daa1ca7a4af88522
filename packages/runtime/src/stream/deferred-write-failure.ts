import type { Socket } from 'node:net'

type Finish = (error?: Error | null) => void

/**
 * Lets a socket be read to its end after a write to it fails. Node.js destroys such a socket at once and discards all
 * unread data, such as the response of a server that rejects an upload. Here the socket fails once the data is read:
 * `errored` is set before later listeners of `end` run.
 */
export function deferWriteFailure(socket: Socket): void {
  const deferred = (finish: Finish): Finish => {
    return (error) => {
      if (!error || socket.readableEnded || socket.destroyed) return finish(error)
      const fail = () => {
        socket.off('end', fail).off('close', fail)
        finish(error)
      }
      socket.prependListener('end', fail).once('close', fail)
    }
  }
  const { _write: write, _writev: writev } = socket
  socket._write = (chunk, encoding, finish) => write.call(socket, chunk, encoding, deferred(finish))
  if (writev) socket._writev = (chunks, finish) => writev.call(socket, chunks, deferred(finish))
}
