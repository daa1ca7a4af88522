import type { SessionId } from '@berth/contract/common/ids.ts'

/**
 * The connections of callers to sessions of this server. They are closed when a caller loses access to its session,
 * including connections that are not authorized yet: register a connection before you authorize it.
 */
export class SessionConnections {
  readonly #open = new Map<string, Set<() => void>>()

  /** Until the disposal, `cut` is called when the callers lose the session. */
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
