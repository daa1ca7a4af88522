import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { forgiveConnection } from '../ingress/connection-limits.ts'
import { type ForwardedFacts, forwardedHeader, type PeerSignature } from './peers/peer-signature.ts'

interface Forwarded {
  /** Absent if the request was meant for another server or forwarded too long ago. */
  readonly facts: ForwardedFacts | undefined
}

const forwarded = new WeakMap<IncomingMessage, Forwarded>()

/** Whether another server forwarded the request. Such a request is never forwarded again. */
export function isForwarded(request: IncomingMessage): boolean {
  return forwarded.has(request)
}

/** The address of the client, also of a forwarded request. */
export function clientAddressOf(request: IncomingMessage): string {
  return forwarded.get(request)?.facts?.client ?? request.socket.remoteAddress ?? ''
}

/**
 * Reads and verifies the facts that another server states about the request. Removes the header if it comes from anyone
 * else.
 */
export function receiveForwarded(request: IncomingMessage, signature: PeerSignature, serverId: string): void {
  const { [forwardedHeader]: value } = request.headers
  if (value === undefined) return
  delete request.headers[forwardedHeader]
  const facts = signature.verify(String(value), request)
  if (!facts) return
  const isMeant = facts.to === serverId && signature.isFresh(facts)
  forwarded.set(request, { facts: isMeant ? facts : undefined })
  // The server that forwarded it has counted its client.
  if (isMeant) forgiveConnection(request.socket as Socket)
}
