import type { Socket } from 'node:net'
import type { HostAndPort } from '@berth/contract/egress/host.ts'

/** Opens connections for the machine it was made for: the one place that decides by which way they leave the host. */
export interface Connector {
  /**
   * Opens a connection to the destination, within a bounded time; rejects with an EgressFailure. The socket is ended
   * by whoever asked for it. Aborting the signal gives up what is under way.
   */
  connect(destination: HostAndPort, signal: AbortSignal): Promise<Socket>
}
