/**
 * The protocol between a machine's agent and egress on the machine's unix socket. The socket identifies the machine.
 * The first line of a connection (JSON and a line feed) states its purpose. This file contains only plain types and
 * constants, because the agent loads it at its start.
 */

/** Incremented with every change that an older agent or egress would misread. */
export const machineProtocolVersion = 1

/** The longest line of either side, including the line feed. Longer lines end the connection. */
export const maxLineBytes = 1_024

/** The name of the host's own loopback, where the operator permits it. */
export const hostName = 'host.berth.internal'

/** The header with the failure of a plain HTTP request, in responses that egress sends in place of the destination. */
export const proxyErrorHeader = 'x-kernel-proxy-error'

export type MachineGreeting = ControlGreeting | LookupGreeting | ConnectGreeting

/**
 * Opened before all other connections, and stays open. A later one replaces it. Egress responds with `ControlReady`.
 * When it ends, all connections of the machine are broken, because one of the two processes is gone. Without it no
 * connection can be opened.
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
 * Requests one connection. Egress responds with one line. After `ConnectionOpened` plain bytes follow in both
 * directions, and each direction ends independently. After `ConnectionFailed` the socket ends. An agent that closes the
 * socket before the response cancels the request.
 */
export interface ConnectGreeting {
  readonly type: 'connect'
  /** A positive integer that the agent chooses, unique among the open connections of the machine. */
  readonly id: number
  /** A name, or an address as text, with IPv6 addresses without brackets. */
  readonly host: string
  readonly port: number
}

export interface ConnectionOpened {
  readonly type: 'connected'
  /** The address of the peer. Absent when a proxy resolves the name, or when egress itself answers. */
  readonly address?: string
  readonly port?: number
}

export interface ConnectionFailed {
  readonly type: 'failed'
  readonly kind: ConnectionFailure
}

/** Why a connection failed. Agents treat kinds that they do not know as `unreachable`. */
export type ConnectionFailure =
  /** The destination sent a reset. */
  | 'connection-refused'
  /** The destination or a router reported it as unreachable. */
  | 'unreachable'
  /** No response in time. */
  | 'timeout'
  /** Sessions are not permitted to connect there. */
  | 'refused'
  | 'name-not-found'
  /**
   * The destination's proxy did not connect. For plain HTTP, egress opens a connection that it answers itself instead.
   */
  | 'proxy-failed'
  /** The machine has reached its limit of connections. */
  | 'too-many'
  /** The greeting was invalid. */
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

/** An empty list means that the name exists without an address of this family. */
export interface LookupAddresses {
  readonly id: number
  readonly addresses: readonly string[]
  readonly ttl: number
}

/**
 * Connections must be identified by the name. The agent assigns it an address that is used for nothing else (an IPv4
 * address only).
 */
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
 * Either side sends this on the control connection before it ends its direction of a data connection, because a unix
 * socket cannot distinguish a reset from an end. `end`: this direction is complete and the other may continue. `reset`:
 * both directions are broken after the bytes sent so far; it may follow an `end`. A data connection that ends without
 * this message is broken too. Since two sockets are not read in the order in which they were written, wait for the
 * message while the control connection is open.
 */
export interface ConnectionClosed {
  readonly type: 'closed'
  readonly id: number
  readonly how: 'end' | 'reset'
}

/** A proxy of the session failed to connect to a destination. */
export interface ProxyFailed {
  readonly type: 'proxy_failed'
  /** A value of the header `X-Kernel-Proxy-Error`. */
  readonly code: string
  readonly host: string
  readonly port: number
}
