import { type Host, parseAddress, parseHost } from '@berth/contract/egress/host.ts'
import type { AddressFamily, ConnectionClosed } from '@berth/contract/egress/machine-protocol.ts'
import { parseLine } from './lines.ts'

export type Greeting =
  | { readonly type: 'control'; readonly version: number }
  | { readonly type: 'lookup' }
  | ConnectionRequest

export interface ConnectionRequest {
  readonly type: 'connect'
  readonly id: number
  readonly host: Host
  readonly port: number
  /** Whether the name was written with a final dot. */
  readonly isFullyQualified: boolean
}

/** Parses the first line of a connection, or returns undefined. The input is untrusted. */
export function parseGreeting(line: string): Greeting | undefined {
  const { type, version, id, host: hostText, port } = parseLine(line) ?? {}
  if (type === 'control') return isPositive(version) ? { type, version } : undefined
  if (type === 'lookup') return { type }
  if (type !== 'connect' || typeof hostText !== 'string' || !isPositive(id) || !isPositive(port)) return undefined
  const host = hostOf(hostText)
  return host && port <= 65_535 ? { type, id, host, port, isFullyQualified: hostText.endsWith('.') } : undefined
}

export interface ParsedLookup {
  readonly id: number
  /** Undefined when the requested name is not a valid host name. */
  readonly name: string | undefined
  readonly isFullyQualified: boolean
  readonly family: AddressFamily
}

export function parseLookup(line: string): ParsedLookup | undefined {
  const { id, name, family } = parseLine(line) ?? {}
  if (!isPositive(id) || typeof name !== 'string' || (family !== 4 && family !== 6)) return undefined
  const host = hostOf(name)
  return { id, family, name: host?.kind === 'name' ? host.name : undefined, isFullyQualified: name.endsWith('.') }
}

export function parseClosed(line: string): ConnectionClosed | undefined {
  const { type, id, how } = parseLine(line) ?? {}
  return type === 'closed' && isPositive(id) && (how === 'end' || how === 'reset') ? { type, id, how } : undefined
}

function hostOf(text: string): Host | undefined {
  const address = parseAddress(text)
  return address ? { kind: 'address', address } : parseHost(text)
}

function isPositive(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0
}
