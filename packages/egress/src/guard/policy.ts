import { type AddressKind, addressKind, translatedAddress } from '@berth/contract/egress/address-kind.ts'
import { type AllowEntry, parseAllowList } from '@berth/contract/egress/allow-list.ts'
import type { EgressPolicy } from '@berth/contract/egress/egress-endpoints.ts'
import { type HostAndPort, parseHostAndPort } from '@berth/contract/egress/host.ts'
import { hostName } from '@berth/contract/egress/machine-protocol.ts'
import { BerthError } from '@berth/contract/errors.ts'
import ipaddr from 'ipaddr.js'

/** The parsed rules of this host. */
export interface Policy {
  readonly allow: readonly AllowEntry[]
  /** The addresses that berth listens on. */
  readonly own: readonly HostAndPort[]
  /** The socket that serves connections from sessions to berth. When absent, they are not served. */
  readonly ownSessionSocket?: string
}

/** One address of a destination. */
export interface Target {
  /** The name that resolved to the address. Absent when the destination is an address. */
  readonly name: string | undefined
  readonly address: string
  readonly port: number
}

/** Why a session may not connect to an address. `own` means an address of this host or of berth. */
export type Refusal = Exclude<AddressKind, 'public'> | 'own'

export function parsePolicy({ allow, own_addresses, own_session_socket }: EgressPolicy): Policy {
  const own = own_addresses.map((text) => {
    const address = parseHostAndPort(text)
    if (!address)
      throw new BerthError('invalid_input', {
        reason: `own_addresses: "${text}" is not an address or host with a port.`,
      })
    return address
  })
  return {
    allow: parseAllowList(allow),
    own,
    ...(own_session_socket !== undefined && { ownSessionSocket: own_session_socket }),
  }
}

/**
 * Returns why a session may not connect to the target, or undefined. `hostAddresses` are those of the host's
 * interfaces.
 */
export function refusalOf(policy: Policy, target: Target, hostAddresses: ReadonlySet<string>): Refusal | undefined {
  const reached = translatedAddress(target.address)
  const kind = addressKind(reached)
  const isOfHost = kind === 'loopback' || hostAddresses.has(reached)

  // Linux connects to loopback when asked for the unspecified address, so an allowed range must not include it.
  if (kind === 'unspecified') return kind
  if (policy.own.some((own) => leadsTo(own, target, reached, isOfHost))) {
    return policy.allow.some((entry) => names(entry, target)) ? undefined : 'own'
  }
  if (policy.allow.some((entry) => covers(entry, target))) return undefined
  if (kind !== 'public') return kind
  return isOfHost ? 'own' : undefined
}

/**
 * Whether the requested destination is berth itself, so that the session gets its own addresses. False where the
 * operator has opened that address to all sessions.
 */
export function isService(
  { allow, own }: Policy,
  destination: HostAndPort,
  hostAddresses: ReadonlySet<string>,
): boolean {
  const { host, port } = destination
  const [name, address] = host.kind === 'name' ? [host.name, ''] : [undefined, host.address]
  if (allow.some((entry) => names(entry, { name, address, port }))) return false
  // The host's name, with a port that berth listens on.
  if (name === hostName) return own.some((listening) => listening.host.kind === 'address' && listening.port === port)
  const reached = name === undefined ? translatedAddress(address) : ''
  const isOfHost = name === undefined && (addressKind(reached) === 'loopback' || hostAddresses.has(reached))
  return own.some((candidate) => leadsTo(candidate, { name, address, port }, reached, isOfHost))
}

/** Whether the entry is exactly this host and port. */
function names(entry: AllowEntry, target: Target): boolean {
  return entry.kind !== 'range' && entry.port !== undefined && covers(entry, target)
}

function covers(entry: AllowEntry, { name, address, port }: Target): boolean {
  if (entry.kind === 'range') {
    const parsed = ipaddr.parse(address)
    return parsed.kind() === entry.range[0].kind() && parsed.match(entry.range as [ipaddr.IPv4, number])
  }
  if (entry.port !== undefined && entry.port !== port) return false
  return entry.kind === 'name' ? entry.name === name : entry.address === address
}

/**
 * Names are compared as names, not by their addresses: a reverse proxy in front of a public name may serve many other
 * sites at the same address.
 */
function leadsTo(own: HostAndPort, { name, port }: Target, reached: string, isOfHost: boolean): boolean {
  if (own.port !== port) return false
  if (own.host.kind === 'name') return own.host.name === name
  return own.host.address === reached || (isOfHost && addressKind(own.host.address) === 'unspecified')
}
