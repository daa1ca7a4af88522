import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { OwnSessionLine } from '@berth/contract/egress/own-session.ts'
import { EgressFailure } from '../egress-failure.ts'
import type { Connector } from './connector.ts'
import { withinLimit } from './time-limit.ts'

/** Connects to berth itself, where the session reaches its own addresses; the first line names the session. */
export class OwnSessionConnector implements Connector {
  readonly key: string
  readonly isDirect = false
  readonly #socketPath: string
  readonly #line: string

  constructor(socketPath: string, sessionId: string) {
    this.key = `own-session ${socketPath} ${sessionId}`
    this.#socketPath = socketPath
    this.#line = `${JSON.stringify({ type: 'own-session', session_id: sessionId } satisfies OwnSessionLine)}\n`
  }

  connect(_destination: unknown, signal: AbortSignal): Promise<Socket> {
    return withinLimit('timeout', signal, async (either) => {
      const socket = connect({ path: this.#socketPath, allowHalfOpen: true })
      socket.on('error', () => {})
      try {
        await once(socket, 'connect', { signal: either })
      } catch (cause) {
        socket.destroy()
        either.throwIfAborted()
        // The server is restarting.
        throw new EgressFailure('connection-refused', 'The server is not listening.', { cause })
      }
      socket.write(this.#line)
      return socket
    })
  }
}
