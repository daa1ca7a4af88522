import type { Socket } from 'node:net'
import type { HostAndPort } from '@berth/contract/egress/host.ts'

/** The destination that a machine requested. */
export interface Destination extends HostAndPort {
  /** Whether the name was written with a final dot. Search domains are then not appended. */
  readonly isFullyQualified: boolean
  /** The address that the machine chose for the name. */
  readonly address?: string
}

/** Opens connections to destinations in one way: directly, or through a proxy. */
export interface Connector {
  /** Equal for connectors that behave the same, even when settings are sent again. */
  readonly key: string
  /** Whether the peer of a connection is the destination itself. */
  readonly isDirect: boolean
  /** Present when the proxy accepts plain HTTP requests but opens no tunnel for them. */
  readonly requests?: RequestProxy
  /**
   * Opens a connection within a limited time, or rejects with an EgressFailure. The caller closes the socket, which may
   * be half open. Aborting the signal cancels the attempt.
   */
  connect(destination: Destination, signal: AbortSignal): Promise<Socket>
}

/** A proxy that accepts plain HTTP requests in absolute form. */
export interface RequestProxy {
  /** The value of the `Proxy-Authorization` header. */
  readonly authorization: string | undefined
  /** Opens a connection to the proxy itself. */
  connect(destination: Destination, signal: AbortSignal): Promise<Socket>
}
