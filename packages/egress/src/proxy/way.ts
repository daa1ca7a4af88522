import type { Socket } from 'node:net'
import type { HostAndPort } from '@berth/contract/egress/host.ts'

/** A way by which connections leave this host: directly, or by a server of a proxy. */
export interface Way {
  /** Equal for ways that are the same, also when the settings were told anew. */
  readonly key: string
  /** Where plain HTTP requests are not sent to their server, but whole to a proxy. */
  readonly hop: HttpHop | undefined
  /**
   * Opens a connection to the destination, within a bounded time; rejects with an EgressFailure. The socket is ended
   * by whoever asked for it. Aborting the signal gives up what is under way.
   */
  connect(destination: HostAndPort, signal: AbortSignal): Promise<Socket>
}

/** A proxy that takes plain HTTP requests in absolute form. */
export interface HttpHop {
  /** What it wants to see in `Proxy-Authorization`. */
  readonly authorization: string | undefined
  /** Whether it has ever said anything. One that has not may be dead, and is not waited for as long. */
  hasSpoken: boolean
  connect(destination: HostAndPort, signal: AbortSignal): Promise<Socket>
}

/** Tells by which way a machine reaches a destination now. */
export interface Ways {
  wayTo(destination: HostAndPort): Way
}
