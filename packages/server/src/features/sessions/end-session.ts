import type { SessionId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { SingleFlight } from '@berth/runtime/async/single-flight.ts'
import type { SessionMachines } from './session-machines.ts'
import type { SessionProfiles } from './session-profiles.ts'
import type { SessionStore } from './session-store.ts'

interface SessionEnderOptions {
  readonly machines: SessionMachines
  readonly profiles: SessionProfiles
  readonly store: SessionStore
  readonly clock: Clock
}

/** Ends sessions: by a caller's wish, by their time, or because their machine has gone. All end the same way. */
export class SessionEnder {
  readonly #machines: SessionMachines
  readonly #profiles: SessionProfiles
  readonly #store: SessionStore
  readonly #clock: Clock
  readonly #finishing = new SingleFlight<SessionId, void>()

  constructor({ machines, profiles, store, clock }: SessionEnderOptions) {
    this.#machines = machines
    this.#profiles = profiles
    this.#store = store
    this.#clock = clock
  }

  /** Ends the session and says whether this call did; resolves when nothing of its machine is left. */
  async end(id: SessionId): Promise<boolean> {
    const ended = await this.#store.beginEnd(id, this.#clock.now())
    if (!ended) return false
    await this.finish(id)
    return true
  }

  /** Ends the session unless something happened in it since. */
  async endIdle(id: SessionId, idleSince: Date): Promise<boolean> {
    const ended = await this.#store.beginTimeout(id, idleSince, this.#clock.now())
    if (!ended) return false
    await this.finish(id)
    return true
  }

  /** Brings an ending session to its end. Safe to repeat: what a crash or an error interrupted is done again. */
  finish(id: SessionId): Promise<void> {
    return this.#finishing.run(id, () => this.#finish(id))
  }

  async #finish(id: SessionId): Promise<void> {
    await this.#profiles.save(id)
    await this.#machines.stop(id)
    await this.#store.finishEnd(id)
  }
}
