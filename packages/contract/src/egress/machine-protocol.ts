/**
 * What a machine's agent and egress say to each other over the machine's unix socket. The socket tells whose machine it
 * is. The first line of a connection, JSON and a line feed, says what the connection is for. Plain types and constants:
 * the agent reads this file at its start.
 */

/** Raised with every change that an older agent or egress would misread. */
export const machineProtocolVersion = 1

/** The longest line of either side, the line feed included. Longer ones end the connection. */
export const maxLineBytes = 1_024

/** The name under which the host's own loopback is reached, where the operator allows it. */
export const hostName = 'host.berth.internal'

/** Says why a request in plain HTTP has not left: for an answer that egress itself gives in the place of the far end. */
export const proxyErrorHeader = 'x-kernel-proxy-error'

export type MachineGreeting = ControlGreeting | LookupGreeting | ConnectGreeting

/**
 * Opened before all others and stays open; a later one takes its place. Egress answers `ControlReady`. When it ends, all
 * connections of the machine have broken: one side of the wire has gone. Without it no connection is opened.
 */
export interface ControlGreeting {
  readonly type: 'control'
  readonly version: number
}

/** Stays open for many lookups: lines of `LookupRequest`, answered by lines of `LookupAnswer` in any order. */
export interface LookupGreeting {
  readonly type: 'lookup'
}

/**
 * Asks for one connection. Egress answers with one line: after `ConnectionOpened` come plain bytes both ways, and each
 * direction ends on its own; after `ConnectionFailed` the socket ends. An agent that closes the socket before gives up.
 */
export interface ConnectGreeting {
  readonly type: 'connect'
  /** Chosen by the agent, a positive integer, unique among the open connections of the machine. */
  readonly id: number
  /** A name, or an address as it is written in text, IPv6 without brackets. */
  readonly host: string
  readonly port: number
}

export interface ConnectionOpened {
  readonly type: 'connected'
  /** Where the connection leads. Absent where a proxy decides, and where egress itself answers. */
  readonly address?: string
  readonly port?: number
}

export interface ConnectionFailed {
  readonly type: 'failed'
  readonly kind: ConnectionFailure
}

/** Why there is no connection. A kind that an agent does not know is `unreachable` to it. */
export type ConnectionFailure =
  /** The far end answers with a reset. */
  | 'connection-refused'
  /** The far end, or a router, says that it cannot be reached. */
  | 'unreachable'
  /** Nobody has answered in time. */
  | 'timeout'
  /** Sessions may not connect there. */
  | 'refused'
  | 'name-not-found'
  /** No connection by the proxy of this destination. Egress opens one that it answers itself instead. */
  | 'proxy-failed'
  /** The machine has as many connections as it may have. */
  | 'too-many'
  /** The greeting was none. */
  | 'bad-request'
  | 'internal-error'

export type AddressFamily = 4 | 6

export interface LookupRequest {
  /** Unique among the open lookups of the connection. */
  readonly id: number
  /** As the program wrote it, with or without its final dot. */
  readonly name: string
  readonly family: AddressFamily
}

export type LookupAnswer = LookupAddresses | LookupByName | LookupFailed

/** An empty list: the name exists and has no address of this family. */
export interface LookupAddresses {
  readonly id: number
  readonly addresses: readonly string[]
  /** Seconds. */
  readonly ttl: number
}

/** The name has to travel with the connection: the agent gives it an address of its own that leads nowhere else (IPv6: none). */
export interface LookupByName {
  readonly id: number
  readonly by_name: true
}

export interface LookupFailed {
  readonly id: number
  readonly failed: LookupFailure
}

export type LookupFailure = 'name-not-found' | 'timeout' | 'refused'

/** Lines of egress on the control connection. Those of the agent, after its greeting, are `ConnectionClosed`. */
export type ControlMessage = ControlReady | ConnectionClosed | ProxyFailed

export interface ControlReady {
  readonly type: 'ready'
  readonly version: number
}

/**
 * Said by either side on the control connection before it ends its direction of a data connection: a unix socket cannot
 * tell a reset from an end. `end`: this direction is complete, the other may go on. `reset`: both directions have
 * broken, behind what was sent before; it may follow an `end`. A data connection that ends without a word has broken too: wait for the word as long as control is open, since
 * two sockets are not read in the order in which they were written.
 */
export interface ConnectionClosed {
  readonly type: 'closed'
  readonly id: number
  readonly how: 'end' | 'reset'
}

/** A proxy of the session has failed to reach a destination. */
export interface ProxyFailed {
  readonly type: 'proxy_failed'
  /** In the words of the header `X-Kernel-Proxy-Error`. */
  readonly code: string
  readonly host: string
  readonly port: number
}
