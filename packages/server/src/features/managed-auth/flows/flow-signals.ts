import type { AuthConnectionId } from '@berth/contract/common/ids.ts'
import { Changes } from '@berth/runtime/async/changes.ts'

/** Of what happens on another server nobody tells this one. */
const lookMilliseconds = 1_000

/** Wakes those of this server who wait for a flow to change. */
export class FlowSignals {
  readonly #changes = new Map<AuthConnectionId, Changes>()

  notify(id: AuthConnectionId): void {
    this.#changes.get(id)?.notify()
  }

  /** Resolves with the next change, after a second at the latest, or when the signal aborts. */
  async next(id: AuthConnectionId, signal: AbortSignal): Promise<void> {
    const changes = this.#changes.get(id) ?? new Changes()
    this.#changes.set(id, changes)
    const wait = new AbortController()
    const timer = setTimeout(() => wait.abort(), lookMilliseconds)
    try {
      await changes.next(AbortSignal.any([signal, wait.signal]))
    } finally {
      clearTimeout(timer)
      wait.abort()
      if (changes.size === 0 && this.#changes.get(id) === changes) this.#changes.delete(id)
    }
  }
}
