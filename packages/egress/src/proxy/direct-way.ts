import type { Socket } from 'node:net'
import { type HostAndPort, hostText } from '@berth/contract/egress/host.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { toEgressFailure } from '../egress-failure.ts'
import type { Guard } from '../guard/guard.ts'
import type { Lookup } from '../guard/lookup.ts'
import { connectToFirst } from './connect-to-first.ts'
import { unlessAborted, withinLimit } from './time-limit.ts'
import type { Way } from './way.ts'

export interface WayOptions {
  readonly guard: Guard
  readonly lookup: Lookup
  readonly logger: Logger
}

/** Straight to the destination, where the guard permits it. */
export class DirectWay implements Way {
  readonly key = 'direct'
  readonly hop = undefined
  readonly #options: WayOptions

  constructor(options: WayOptions) {
    this.#options = options
  }

  async connect(destination: HostAndPort, signal: AbortSignal): Promise<Socket> {
    const { guard, lookup, logger } = this.#options
    try {
      return await withinLimit('timeout', signal, async (either) => {
        const addresses = await unlessAborted(guard.permit(destination, lookup), either)
        return connectToFirst(addresses, either)
      })
    } catch (error) {
      const facts = { host: hostText(destination.host), port: destination.port, failure: toEgressFailure(error).kind }
      if (!signal.aborted) logger.debug(facts, 'could not connect')
      throw error
    }
  }
}
