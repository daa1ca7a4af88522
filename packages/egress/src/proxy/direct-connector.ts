import type { Socket } from 'node:net'
import { type HostAndPort, hostText } from '@berth/contract/egress/host.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { EgressFailure, toEgressFailure } from '../egress-failure.ts'
import type { Guard } from '../guard/guard.ts'
import type { Lookup } from '../guard/lookup.ts'
import { connectToFirst } from './connect-to-first.ts'
import type { Connector } from './connector.ts'

const connectLimitMilliseconds = 20_000

/** Connects straight to the destination, where the guard permits it. */
export class DirectConnector implements Connector {
  readonly #guard: Guard
  readonly #lookup: Lookup
  readonly #logger: Logger

  constructor({ guard, lookup, logger }: { guard: Guard; lookup: Lookup; logger: Logger }) {
    this.#guard = guard
    this.#lookup = lookup
    this.#logger = logger
  }

  async connect(destination: HostAndPort, signal: AbortSignal): Promise<Socket> {
    const limit = new AbortController()
    const timer = setTimeout(() => limit.abort(new EgressFailure('timeout')), connectLimitMilliseconds)
    const either = AbortSignal.any([signal, limit.signal])
    try {
      const addresses = await unlessAborted(this.#guard.permit(destination, this.#lookup), either)
      return await connectToFirst(addresses, either)
    } catch (error) {
      const facts = { host: hostText(destination.host), port: destination.port, failure: toEgressFailure(error).kind }
      if (!signal.aborted) this.#logger.debug(facts, 'could not connect')
      throw error
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Lookups cannot be stopped, so an aborted one is left to end by itself. */
function unlessAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
