import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import { sessionRoot } from '../features/sessions/records/session-urls.ts'

/** Connections that come out of a machine, and the session that it belongs to. */
const sessions = new WeakMap<Duplex, SessionId>()

export function markAsOwnSession(socket: Duplex, session: SessionId): void {
  sessions.set(socket, session)
}

/** The session out of whose machine the connection comes, if it does. */
export function ownSessionOf(socket: Duplex): SessionId | undefined {
  return sessions.get(socket)
}

/**
 * Throws where a request comes out of a machine and is for anything but that machine's own session. Its token is asked for
 * all the same: a page of the session that does not know it stays outside. The path is held to what it was sent as, since
 * whatever resolves dots in it could lead elsewhere.
 */
export function keepToOwnSession({ socket, url = '' }: Pick<IncomingMessage, 'socket' | 'url'>): void {
  const session = ownSessionOf(socket)
  if (session === undefined) return
  const own = `${sessionRoot}/${session}/`
  const path = pathOf(url)
  if (path.startsWith(own) && !hasDots(path)) return
  throw new BerthError('forbidden', {
    reason: `From inside of a session only its own addresses below ${own} are served.`,
  })
}

function hasDots(path: string): boolean {
  return path.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment))
}
