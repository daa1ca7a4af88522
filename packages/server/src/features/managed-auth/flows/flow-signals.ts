import type { AuthConnectionId } from '@berth/contract/common/ids.ts'
import { Changes } from '@berth/runtime/async/changes.ts'

/** How often to poll for changes that happen on other servers. */
const pollMilliseconds = 1_000

/** Wakes callers on this server that wait for a change of a flow. */
export class FlowSignals {
  readonly #changes = new Map<AuthConnectionId, Changes>()

  notify(id: AuthConnectionId): void {
    this.#changes.get(id)?.notify()
  }

  /** Resolves at the next change, after one second at the latest, or when the signal aborts. */
  async next(id: AuthConnectionId, signal: AbortSignal): Promise<void> {
    const changes = this.#changes.get(id) ?? new Changes()
    this.#changes.set(id, changes)
    const wait = new AbortController()
    const timer = setTimeout(() => wait.abort(), pollMilliseconds)
    try {
      await changes.next(AbortSignal.any([signal, wait.signal]))
    } finally {
      clearTimeout(timer)
      wait.abort()
      if (changes.size === 0 && this.#changes.get(id) === changes) this.#changes.delete(id)
    }
  }
}
