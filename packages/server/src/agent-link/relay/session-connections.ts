import type { SessionId } from '@berth/contract/common/ids.ts'

/**
 * The connections of callers to sessions of this server. A caller that has to be without its session loses them, also
 * those that are not admitted yet: whoever admits callers registers their connections before it decides.
 */
export class SessionConnections {
  readonly #open = new Map<string, Set<() => void>>()

  /** Until the disposal, `cut` is called when the callers of the session lose it. */
  add(session: string, cut: () => void): Disposable {
    const connections = this.#open.get(session) ?? new Set()
    this.#open.set(session, connections.add(cut))
    return {
      [Symbol.dispose]: () => {
        connections.delete(cut)
        if (connections.size === 0 && this.#open.get(session) === connections) this.#open.delete(session)
      },
    }
  }

  cut(session: SessionId): void {
    for (const cut of this.#open.get(session) ?? []) cut()
  }
}
