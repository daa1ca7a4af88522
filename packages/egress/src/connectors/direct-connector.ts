import type { Socket } from 'node:net'
import { BulkSocket } from '@berth/runtime/stream/bulk-socket.ts'
import type { EgressLogger } from '../egress-logger.ts'
import type { Guard } from '../guard/guard.ts'
import type { NameResolver } from '../names/name-resolver.ts'
import { connectToFirst } from './connect-to-first.ts'
import type { Connector, Destination } from './connector.ts'
import { unlessAborted, withinLimit } from './time-limit.ts'

export interface ConnectorOptions {
  readonly guard: Guard
  readonly names: Pick<NameResolver, 'addresses'>
  readonly logger: EgressLogger
}

/** Connects directly to destinations that the guard permits. */
export class DirectConnector implements Connector {
  readonly key = 'direct'
  readonly isDirect = true
  readonly #options: ConnectorOptions

  constructor(options: ConnectorOptions) {
    this.#options = options
  }

  connect(destination: Destination, signal: AbortSignal): Promise<Socket> {
    const { guard, names } = this.#options
    const { address, isFullyQualified } = destination
    const lookup = async (name: string) => (address ? [address] : names.addresses(isFullyQualified ? `${name}.` : name))
    return withinLimit('timeout', signal, async (either) =>
      connectToFirst(await unlessAborted(guard.permit(destination, lookup), either), either, BulkSocket),
    )
  }
}
