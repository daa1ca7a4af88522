import type { ProxyId, SessionId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { ProxyStore } from '../features/proxies/proxy-store.ts'
import type { SessionStore } from '../features/sessions/session-store.ts'

interface DeletedProxiesOptions {
  readonly proxies: ProxyStore
  readonly sessions: SessionStore
  /** Lets a session leave as its row says. */
  readonly restore: (id: SessionId) => Promise<void>
  readonly driverId: string
  readonly clock: Clock
  readonly logger: Logger
}

/** Clocks of servers differ, and a delete is seen some time after it was dated. */
const lookBackMilliseconds = 60_000

/**
 * Takes deleted proxies from the sessions of this host, whichever server has deleted them: at once when it was this
 * one, else with the next round.
 */
export class DeletedProxies {
  readonly #options: DeletedProxiesOptions
  /** Those whose sessions have been told, with the time of their end. */
  readonly #done = new Map<ProxyId, Date>()
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> = Promise.resolve()

  constructor(options: DeletedProxiesOptions) {
    this.#options = options
  }

  start(intervalMilliseconds: number): void {
    this.#timer = setInterval(() => {
      this.follow().catch((error: unknown) =>
        this.#options.logger.warn({ err: error }, 'could not follow the deleted proxies; trying again'),
      )
    }, intervalMilliseconds)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#round.catch(() => {})
  }

  /** Looks once more; of calls at the same time one works after the other. */
  follow(): Promise<void> {
    this.#round = this.#round.catch(() => {}).then(() => this.#follow())
    return this.#round
  }

  async #follow(): Promise<void> {
    const { proxies, sessions, restore, driverId, clock } = this.#options
    const since = new Date(clock.now().getTime() - lookBackMilliseconds)
    for (const [id, at] of this.#done) if (at < since) this.#done.delete(id)
    for (const { id, deleted_at } of await proxies.listDeletedSince(since)) {
      if (this.#done.has(id)) continue
      const users = await sessions.listUsersOfProxy(driverId, id)
      await Promise.all(users.map((session) => restore(session.id)))
      // One that is starting may have read its settings before, and can only be told when it has started.
      if (users.every(({ state }) => state === 'active')) this.#done.set(id, deleted_at as Date)
    }
  }
}
