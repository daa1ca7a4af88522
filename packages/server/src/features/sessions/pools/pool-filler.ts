import type { PoolId, ProjectId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { settleAll } from '@berth/runtime/async/settle-all.ts'
import type { SessionCreator, SessionSlot } from '../create/create-session.ts'
import { type FillStore, NoFreeSlotError } from './fill-store.ts'
import type { LeaseStore } from './lease-store.ts'
import { resolvedRequest } from './pool-config.ts'
import type { PoolService } from './pool-service.ts'
import type { Pool } from './pool-store.ts'

/** Limited because callers' own sessions start at the same time. */
const buildsAtOnce = 2

interface PoolFillerOptions {
  readonly store: FillStore
  readonly leases: LeaseStore
  readonly pools: PoolService
  readonly createSession: SessionCreator['create']
  readonly clock: Clock
}

/** Builds the missing browsers of pools. Runs as a job. */
export class PoolFiller {
  readonly #options: PoolFillerOptions

  constructor(options: PoolFillerOptions) {
    this.#options = options
  }

  /** Enqueues jobs for all pools that need browsers, and removes waiting callers of servers that are gone. */
  async tend(): Promise<void> {
    const { store, leases, pools } = this.#options
    await leases.forgetLostWaiters()
    for (const id of await store.listShort()) await pools.requestFill(id)
  }

  /** Builds on this server until the pool is full or the fill rate permits no more. */
  async fill(id: PoolId, signal: AbortSignal): Promise<void> {
    let hasFailed = false
    const build = async () => {
      try {
        while (!hasFailed && !signal.aborted && (await this.#buildOne(id, signal)));
      } catch (error) {
        // After a failure, the other builder does not retry immediately.
        hasFailed = true
        throw error
      }
    }
    await settleAll(Array.from({ length: buildsAtOnce }, build))
  }

  async #buildOne(id: PoolId, signal: AbortSignal): Promise<boolean> {
    const { store, createSession, clock } = this.#options
    const pool = await store.findShort(id, clock.now())
    if (!pool) return false
    try {
      const projectId: ProjectId = pool.project_id
      await createSession(projectId, resolvedRequest(pool.config, pool), signal, this.#placeIn(pool))
    } catch (error) {
      if (error instanceof NoFreeSlotError) return true
      // It is not needed any more.
      if (error instanceof BerthError && error.code === 'session_ended_while_starting') return true
      throw error
    }
    return true
  }

  #placeIn(pool: Pool): SessionSlot {
    const { store, clock } = this.#options
    return {
      take: (write) => store.takeSlot(pool, clock.now(), write),
      columnsFor: ({ proxy, network, telemetry }) => ({
        pool_id: pool.id,
        pool_defaults: `{"proxy":${proxy},"network":${network ?? null},"telemetry":${telemetry ?? null}}`,
      }),
      state: 'idle',
    }
  }
}
