import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Rejects with the system's error when nobody listens. */
export async function connectUnixSocket(path: string): Promise<Socket> {
  const socket = connect(path)
  await once(socket, 'connect')
  return socket
}
