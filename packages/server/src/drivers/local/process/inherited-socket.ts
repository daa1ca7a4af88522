import { once } from 'node:events'
import { chmodSync, renameSync } from 'node:fs'
import { createServer } from 'node:net'

/** A unix socket that is made here, so that connections can wait in it, and that a child process inherits. */
export interface InheritedSocket {
  /** For the child's `stdio`. */
  readonly descriptor: number
  /**
   * Gives the socket its path and closes our own hold on it. Call it in the same turn as the spawn: while this process
   * holds the socket it would accept the child's connections itself.
   */
  handOver(): void
  /** Closes a socket that was not handed over. */
  [Symbol.dispose](): void
}

export async function openInheritedSocket(path: string): Promise<InheritedSocket> {
  // Node removes the path that it has bound when it closes the socket. Under another name by then, ours stays.
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

/** Node passes streams on to children, but a listening socket only as a number, which it has no public name for. */
function descriptorOf(server: object): number {
  const descriptor = (server as { _handle?: { fd?: number } })._handle?.fd
  if (typeof descriptor !== 'number' || descriptor < 0)
    throw new Error('this Node.js does not tell the descriptor of a socket')
  return descriptor
}
