import type { Socket } from 'node:net'
import type { HostAndPort } from '@berth/contract/egress/host.ts'

/** What a machine has asked for. */
export interface Destination extends HostAndPort {
  /** Whether no search domain may be put behind the name: it was written with a final dot. */
  readonly isWhole: boolean
  /** The one address of the name that the machine has chosen itself. */
  readonly address?: string
}

/** Opens connections to destinations in one manner: directly, or by a proxy. */
export interface Connector {
  /** Equal for connectors that do the same, also when the settings were told anew. */
  readonly key: string
  /** Whether the far end of a connection is the destination itself. */
  readonly isDirect: boolean
  /** Takes requests of plain HTTP where it opens no tunnel for them. */
  readonly requests?: RequestProxy
  /**
   * Opens a connection within a bounded time; rejects with an EgressFailure. The socket is ended by whoever asked for
   * it, and may end on one side first. Aborting the signal gives up what is under way.
   */
  connect(destination: Destination, signal: AbortSignal): Promise<Socket>
}

/** A proxy that takes plain HTTP in absolute form. */
export interface RequestProxy {
  /** What it wants to see in `Proxy-Authorization`. */
  readonly authorization: string | undefined
  /** Opens a connection to the proxy itself. */
  connect(destination: Destination, signal: AbortSignal): Promise<Socket>
}
