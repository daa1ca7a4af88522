import type { Server, Socket } from 'node:net'
import { BerthError } from '@berth/contract/errors.ts'
import { errorBody, retryHeaders } from '@berth/runtime/http/error-reply.ts'
import { endWithResponse } from '@berth/runtime/http/raw-response.ts'
import { isFromMachine } from '../own-session/own-session-guard.ts'

export interface ConnectionLimits {
  /** The limit of all clients together. */
  readonly total: number
  /** The limit of one client: an IPv4 address, or the /64 of an IPv6 address. */
  readonly perAddress: number
}

/** A program that drives hundreds of sessions has several connections for each. */
export const defaultConnectionLimits: ConnectionLimits = { total: 8_000, perAddress: 1_000 }

/** Releases the slot of a connection among those of its address. */
const places = new WeakMap<Socket, () => void>()

/** Stops counting a connection of another server, which has counted the clients. */
export function forgiveConnection(socket: Socket): void {
  places.get(socket)?.()
}

/** Counts the connections of each address. Connections beyond the limit are answered with 429 or closed. */
export function limitConnections(server: Server, { total, perAddress }: ConnectionLimits): void {
  const open = new Map<string, number>()
  server.maxConnections = total
  server.on('connection', (socket) => {
    // Connections from machines have no address and are counted per session.
    if (isFromMachine(socket)) return
    const client = clientOf(socket)
    const count = (open.get(client) ?? 0) + 1
    open.set(client, count)
    const giveBack = () => {
      if (!places.delete(socket)) return
      const left = (open.get(client) ?? 1) - 1
      if (left > 0) open.set(client, left)
      else open.delete(client)
    }
    places.set(socket, giveBack)
    socket.once('close', giveBack)
    if (count <= perAddress) return
    const error = new BerthError('too_many_connections', { limit: perAddress })
    endWithResponse(socket, error.status, errorBody(error), retryHeaders(error))
    socket.destroySoon()
  })
}

/** The owner of an IPv6 address usually has all of its /64. */
export function clientOf({ remoteAddress = '' }: Pick<Socket, 'remoteAddress'>): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(remoteAddress)?.[1]
  if (mapped !== undefined) return mapped
  if (!remoteAddress.includes(':')) return remoteAddress
  const [head = '', tail] = remoteAddress.split('::')
  const groups = head.split(':').filter(Boolean)
  const tailGroups = (tail ?? '').split(':').filter(Boolean)
  const zeros = tail === undefined ? 0 : 8 - groups.length - tailGroups.length
  return [...groups, ...Array<string>(Math.max(0, zeros)).fill('0'), ...tailGroups].slice(0, 4).join(':')
}
