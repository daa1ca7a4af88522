import { Socket } from 'node:net'
import type { BulkSocket } from '@berth/runtime/stream/bulk-socket.ts'
import { EgressFailure, toEgressFailure } from '../egress-failure.ts'
import { type PermittedAddress, refused } from '../guard/guard.ts'

const headStartMilliseconds = 250
/** The kernel probes the peer after this time without traffic. Silence alone never closes a connection. */
const keepAliveAfterMilliseconds = 15 * 60_000

/**
 * Connects to the first address that answers. Each attempt gets a head start before the next one begins beside it (RFC
 * 8305). Node's own `autoSelectFamily` cancels an attempt when it starts the next one, so on a slow line it can only
 * reach the last address.
 */
export function connectToFirst(
  addresses: readonly PermittedAddress[],
  signal: AbortSignal,
  Kind: typeof Socket | typeof BulkSocket = Socket,
): Promise<Socket> {
  const waiting = interleaveFamilies(addresses)
  const attempts = new Set<Socket>()
  const failures: EgressFailure[] = []
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  let headStart: NodeJS.Timeout | undefined

  const startNext = () => {
    clearTimeout(headStart)
    const next = waiting.shift()
    if (!next) {
      if (attempts.size === 0) reject(mostSpecific(failures))
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
    // A paused socket then holds one chunk and stops reading. The type declarations omit the options that are passed on
    // to the stream.
    readableHighWaterMark: 1,
  }
  const socket = new Kind(options).connect(options)
  // Users of the socket handle 'close'. An 'error' event without a listener would end the process.
  socket.on('error', () => {})
  return socket
}

/** Alternates IPv6 and IPv4, so that a broken family costs one head start. */
function interleaveFamilies(addresses: readonly PermittedAddress[]): PermittedAddress[] {
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
 * Linux connects to a local address from that same address. This check also covers addresses that are not listed: those
 * of an interface without a carrier, of a local route, or added a moment ago.
 */
function leadsToThisHost(socket: Socket): boolean {
  return socket.remoteAddress === socket.localAddress
}

/** On a host without IPv6 every IPv6 attempt fails, which says nothing about the destination. */
function mostSpecific(failures: readonly EgressFailure[]): EgressFailure {
  return failures.find(({ kind }) => kind !== 'unreachable') ?? failures[0] ?? new EgressFailure('unreachable')
}
