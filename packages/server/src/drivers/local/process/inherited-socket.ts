import { once } from 'node:events'
import { chmodSync, renameSync } from 'node:fs'
import { createServer } from 'node:net'

/** A unix socket that this process creates, so that connections can wait in it, and that a child process inherits. */
export interface InheritedSocket {
  /** For the child's `stdio`. */
  readonly descriptor: number
  /**
   * Gives the socket its path and closes our descriptor. Call it in the same turn as the spawn: while this process
   * holds the socket, it would accept the child's connections itself.
   */
  handOver(): void
  /** Closes a socket that was not handed over. */
  [Symbol.dispose](): void
}

export async function openInheritedSocket(path: string): Promise<InheritedSocket> {
  // On close, Node.js removes the path that it has bound. The socket has been renamed by then, so it stays.
  const boundPath = `${path}.new`
  const server = createServer()
  server.listen(boundPath)
  await once(server, 'listening')
  chmodSync(boundPath, 0o600)
  return {
    descriptor: descriptorOf(server),
    handOver() {
      renameSync(boundPath, path)
      server.close()
    },
    [Symbol.dispose]() {
      if (server.listening) server.close()
    },
  }
}

/**
 * Node.js passes streams to child processes, but a listening socket only as a descriptor, which has no public property.
 */
function descriptorOf(server: object): number {
  const descriptor = (server as { _handle?: { fd?: number } })._handle?.fd
  if (typeof descriptor !== 'number' || descriptor < 0)
    throw new Error('this version of Node.js does not reveal the descriptor of a socket')
  return descriptor
}
