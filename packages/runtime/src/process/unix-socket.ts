import { once } from 'node:events'
import { connect } from 'node:net'

/** Whether a process listens on the socket. */
export async function isServed(path: string): Promise<boolean> {
  const socket = connect(path)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
