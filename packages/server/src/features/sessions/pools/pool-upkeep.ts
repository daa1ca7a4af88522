import type { Logger } from '@berth/runtime/process/logger.ts'
import type { SessionTerminator } from '../end/end-session.ts'
import type { LeaseQueue } from './lease-queue.ts'
import type { LeaseReturns } from './lease-returns.ts'
import type { LeaseStore } from './lease-store.ts'
import type { PoolService } from './pool-service.ts'
import type { PoolChange, PoolSignals } from './pool-signals.ts'

interface PoolUpkeepOptions {
  readonly signals: PoolSignals
  readonly store: LeaseStore
  readonly queue: LeaseQueue
  readonly returns: LeaseReturns
  readonly pools: PoolService
  readonly terminator: SessionTerminator
  readonly serverId: string
  readonly logger: Logger
}

/**
 * Reacts immediately to changes of pools that concern this server, whichever server made them. Missed changes are
 * handled later: by the reaper for browsers of this server, by the job of every minute for pools, and by their time
 * limit for waiting callers.
 */
export class PoolUpkeep {
  readonly #options: PoolUpkeepOptions

  constructor(options: PoolUpkeepOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    const { signals, store, queue } = this.#options
    await store.forgetOwnWaiters()
    signals.on('changed', (change) => this.#take(change))
    signals.on('connected', () => queue.serveAll())
    await signals.start()
  }

  /** Waiting callers receive the response that there is no browser. */
  async close(): Promise<void> {
    this.#options.queue.close()
    await this.#options.signals.close()
  }

  #take(change: PoolChange): void {
    this.#follow(change).catch((error: unknown) =>
      this.#options.logger.warn({ err: error, poolId: change.pool }, 'could not apply a change of a pool; retrying'),
    )
  }

  async #follow({ pool, state, session, server }: PoolChange): Promise<void> {
    const { queue, returns, terminator, pools, serverId } = this.#options
    if (state === 'idle' || state === 'waiter left') queue.serve(pool)
    if (server !== serverId || !session) return
    if (state === 'returning') await returns.finish(session)
    if (state === 'ending') await Promise.all([terminator.finish(session), pools.requestFill(pool)])
  }
}
