import type { EgressRoute } from '@berth/contract/egress/egress-endpoints.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Guard } from './guard/guard.ts'
import { type Lookup, limitLookups } from './guard/lookup.ts'
import { MachineProxy } from './proxy/machine-proxy.ts'
import { MachineWays } from './proxy/machine-ways.ts'

const maxLookupsOfMachine = 8

/** The machines that egress serves, each with a proxy of its own. */
export class Machines {
  readonly #guard: Guard
  readonly #lookup: Lookup
  readonly #logger: Logger
  readonly #proxies = new Map<string, MachineProxy>()
  /** Changes run one after another: two for the same machine must not meet half way. */
  #lastChange: Promise<unknown> = Promise.resolve()

  constructor({ guard, lookup, logger }: { guard: Guard; lookup: Lookup; logger: Logger }) {
    this.#guard = guard
    this.#lookup = lookup
    this.#logger = logger
  }

  get ids(): readonly string[] {
    return [...this.#proxies.keys()]
  }

  /** Serves the machine at the route, from now on or as before. */
  async put(id: string, route: EgressRoute): Promise<void> {
    const { settings, gently } = route
    // Before its turn: the others do not wait for it.
    if (gently?.after_request_to !== undefined) await this.#proxies.get(id)?.untilAsked(gently.after_request_to)
    return this.#inTurn(async () => {
      const known = this.#proxies.get(id)
      const proxy = known ?? this.#createProxy(id, settings)
      try {
        known?.setSettings(settings, gently !== undefined)
        await proxy.listen(route)
      } catch (error) {
        if (!known) await proxy.close()
        throw error
      }
      this.#proxies.set(id, proxy)
    })
  }

  /** Cuts the machine off. An unknown machine is fine. */
  delete(id: string): Promise<void> {
    return this.#inTurn(async () => {
      await this.#proxies.get(id)?.close()
      this.#proxies.delete(id)
    })
  }

  async close(): Promise<void> {
    await Promise.all(this.ids.map((id) => this.delete(id)))
  }

  #createProxy(id: string, settings: EgressSettings): MachineProxy {
    const logger = this.#logger.child({ machine: id })
    const lookup = limitLookups(this.#lookup, maxLookupsOfMachine)
    return new MachineProxy({ ways: new MachineWays(settings, { guard: this.#guard, lookup, logger }), logger })
  }

  #inTurn<Result>(change: () => Promise<Result>): Promise<Result> {
    const result = this.#lastChange.then(change)
    this.#lastChange = result.catch(() => {})
    return result
  }
}
