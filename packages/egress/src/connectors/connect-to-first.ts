import { Socket } from 'node:net'
import type { BulkSocket } from '@berth/runtime/stream/bulk-socket.ts'
import { EgressFailure, toEgressFailure } from '../egress-failure.ts'
import { type PermittedAddress, refused } from '../guard/guard.ts'

const headStartMilliseconds = 250
/** After this time without a byte, the kernel asks whether the other side is still there. Silence itself ends nothing. */
const keepAliveAfterMilliseconds = 15 * 60_000

/**
 * Connects to the first of the addresses that answers. Each gets a head start before the next is tried beside it, as
 * RFC 8305 wants it. (Node's own `autoSelectFamily` ends an attempt when it starts the next one, so that from a slow
 * line nothing but the last address could be reached.)
 */
export function connectToFirst(
  addresses: readonly PermittedAddress[],
  signal: AbortSignal,
  Kind: typeof Socket | typeof BulkSocket = Socket,
): Promise<Socket> {
  const waiting = inTurns(addresses)
  const attempts = new Set<Socket>()
  const failures: EgressFailure[] = []
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  let headStart: NodeJS.Timeout | undefined

  const startNext = () => {
    clearTimeout(headStart)
    const next = waiting.shift()
    if (!next) {
      if (attempts.size === 0) reject(mostTelling(failures))
      return
    }
    const socket = startAttempt(next, Kind)
    attempts.add(socket)
    socket.once('connect', () => {
      if (!next.mayBeOfHost && leadsToThisHost(socket)) return socket.destroy(refused('own'))
      attempts.delete(socket)
      resolve(socket)
    })
    socket.once('error', (error) => {
      failures.push(toEgressFailure(error))
      attempts.delete(socket)
      startNext()
    })
    headStart = setTimeout(startNext, headStartMilliseconds)
  }

  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  else startNext()
  return promise.finally(() => {
    clearTimeout(headStart)
    signal.removeEventListener('abort', abort)
    waiting.length = 0
    for (const socket of attempts) socket.destroy()
  })
}

function startAttempt({ address, port }: PermittedAddress, Kind: typeof Socket | typeof BulkSocket): Socket {
  const options = {
    host: address,
    port,
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveAfterMilliseconds,
    // A paused socket holds one chunk and reads no further. (The types do not know what goes on to the stream.)
    readableHighWaterMark: 1,
  }
  const socket = new Kind(options).connect(options)
  // Whoever uses the socket hears of its end by 'close'. An error without a listener would end the process.
  socket.on('error', () => {})
  return socket
}

/** IPv6 and IPv4 in turns, so that one family that is broken costs one head start. */
function inTurns(addresses: readonly PermittedAddress[]): PermittedAddress[] {
  const preferred = addresses.filter(({ address }) => isIPv6(address) === isIPv6(addresses[0]?.address ?? ''))
  const others = addresses.filter((address) => !preferred.includes(address))
  return preferred
    .flatMap((address, index) => [address, ...others.slice(index, index + 1)])
    .concat(others.slice(preferred.length))
}

function isIPv6(address: string): boolean {
  return address.includes(':')
}

/**
 * Linux connects an address of its own from that same address. This also finds addresses that are not listed: of an
 * interface without a carrier, of a local route, or given to the host a moment ago.
 */
function leadsToThisHost(socket: Socket): boolean {
  return socket.remoteAddress === socket.localAddress
}

/** A host without IPv6 fails to reach every IPv6 address; that says nothing about the destination. */
function mostTelling(failures: readonly EgressFailure[]): EgressFailure {
  return failures.find(({ kind }) => kind !== 'unreachable') ?? failures[0] ?? new EgressFailure('unreachable')
}
