import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import { sessionRoot } from '../features/sessions/records/session-urls.ts'

const machinePrefix = 'mch'

/** Connections from machines, with the session of the machine. */
const sessions = new WeakMap<Duplex, SessionId>()
const fromMachines = new WeakSet<Duplex>()

export function markAsOwnSession(socket: Duplex, session: SessionId): void {
  fromMachines.add(socket)
  // The machine of an app identifies itself by its id, and counts as an ordinary client.
  if (!session.startsWith(machinePrefix)) sessions.set(socket, session)
}

/** Whether a machine opened the connection: one of a session or of an app. Their number is limited for each machine. */
export function isFromMachine(socket: Duplex): boolean {
  return fromMachines.has(socket)
}

/** The session whose machine opened the connection, or undefined for other connections. */
export function ownSessionOf(socket: Duplex): SessionId | undefined {
  return sessions.get(socket)
}

/**
 * Throws when a request from a machine is for anything but that machine's own session. The session's token is still
 * required, so that a page without it has no access. The path is compared as sent: a path with dots is rejected,
 * because resolving them could lead elsewhere.
 */
export function restrictToOwnSession({ socket, url = '' }: Pick<IncomingMessage, 'socket' | 'url'>): void {
  const session = ownSessionOf(socket)
  if (session === undefined) return
  const own = `${sessionRoot}/${session}/`
  const path = pathOf(url)
  if (path.startsWith(own) && !hasDots(path)) return
  throw new BerthError('forbidden', {
    reason: `Inside a session, berth serves only its own addresses below ${own}.`,
  })
}

function hasDots(path: string): boolean {
  return path.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment))
}
