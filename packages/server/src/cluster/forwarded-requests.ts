import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { forgiveConnection } from '../ingress/connection-limits.ts'
import { type ForwardedFacts, forwardedHeader, type PeerSignature } from './peers/peer-signature.ts'

interface Forwarded {
  /** Absent: it was meant for another server, or has been under way for too long. */
  readonly facts: ForwardedFacts | undefined
}

const forwarded = new WeakMap<IncomingMessage, Forwarded>()

/** Whether another server has passed the request on. It is never passed on again. */
export function isForwarded(request: IncomingMessage): boolean {
  return forwarded.has(request)
}

/** The address of the client, also where another server has passed its request on. */
export function clientAddressOf(request: IncomingMessage): string {
  return forwarded.get(request)?.facts?.client ?? request.socket.remoteAddress ?? ''
}

/** Reads what another server says of the request. The header of anybody else is removed, and nothing is believed. */
export function receiveForwarded(request: IncomingMessage, signature: PeerSignature, serverId: string): void {
  const { [forwardedHeader]: value } = request.headers
  if (value === undefined) return
  delete request.headers[forwardedHeader]
  const facts = signature.verify(String(value), request)
  if (!facts) return
  const isMeant = facts.to === serverId && signature.isFresh(facts)
  forwarded.set(request, { facts: isMeant ? facts : undefined })
  // Its clients were counted where they came in.
  if (isMeant) forgiveConnection(request.socket as Socket)
}
