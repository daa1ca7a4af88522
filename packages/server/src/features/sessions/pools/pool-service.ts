import type { BrowserPoolCreateRequest, BrowserPoolUpdateRequest } from '@berth/contract/browser-pools/browser-pool.ts'
import type { Region } from '@berth/contract/browsers/browser.ts'
import { newId, type PoolId, type ProfileId, type ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Database } from '../../../database/database.ts'
import type { PoolConfig } from '../../../database/tables.ts'
import { fillPool } from '../../../jobs/declared-jobs.ts'
import type { JobQueue } from '../../../jobs/job-runner.ts'
import type { LimitService } from '../../limits/limit-service.ts'
import type { SessionRequests } from '../create/session-request.ts'
import { initialConfig, namedRequest, updatedConfig } from './pool-config.ts'
import type { CountedPool, Pool, PoolFilter, PoolStore } from './pool-store.ts'

const updateAttempts = 10

interface PoolServiceOptions {
  readonly store: PoolStore
  readonly requests: SessionRequests
  readonly limits: LimitService
  readonly jobs: JobQueue
  readonly clock: Clock
  readonly logger: Logger
}

/** The rules of pools. The job that fills them builds and ends browsers afterwards. */
export class PoolService {
  readonly #options: PoolServiceOptions

  constructor(options: PoolServiceOptions) {
    this.#options = options
  }

  async create(projectId: ProjectId, request: BrowserPoolCreateRequest): Promise<CountedPool> {
    const { store, limits, clock } = this.#options
    const config = initialConfig(request)
    const resolved = await this.#resolve(projectId, config, request.region)
    const now = clock.now()
    const pool = await limits.changeSlots(projectId, (database) =>
      store.insert(
        {
          id: newId('pool', now),
          project_id: projectId,
          name: request.name ?? null,
          size: request.size,
          fill_rate_per_minute: request.fill_rate_per_minute,
          refresh_on_profile_update: request.refresh_on_profile_update ?? resolved.profile_id !== null,
          config: JSON.stringify(config),
          ...resolved,
          // The first browsers are exempt from the fill rate. With a rate of 0, nothing is built.
          unpaced_builds: request.fill_rate_per_minute === 0 ? 0 : request.size,
          next_build_at: null,
          created_at: now,
        },
        database,
      ),
    )
    await this.requestFill(pool.id)
    return (await store.findById(pool.id)) ?? { ...pool, available: 0, acquired: 0 }
  }

  async list(filter: PoolFilter, page: PageRequest): Promise<Page<CountedPool>> {
    return this.#options.store.list(filter, page)
  }

  async get(projectId: ProjectId, idOrName: string): Promise<CountedPool> {
    const pool = await this.#options.store.find(projectId, idOrName)
    if (!pool) throw new BerthError('pool_not_found', { pool: idOrName })
    return pool
  }

  /** The update is merged with what was read before. After a concurrent update, it is merged again. */
  async update(projectId: ProjectId, idOrName: string, update: BrowserPoolUpdateRequest): Promise<CountedPool> {
    for (let attempt = 0; attempt < updateAttempts; attempt += 1) {
      const pool = await this.get(projectId, idOrName)
      const columns = await this.#changedColumns(pool, update)
      const isUpdated = await this.#options.limits.changeSlots(projectId, (database) =>
        this.#update(pool, { columns, discardsIdle: update.discard_all_idle, database }),
      )
      if (!isUpdated) continue
      await this.requestFill(pool.id)
      return this.get(projectId, pool.id)
    }
    throw new BerthError('pool_changed_meanwhile')
  }

  async delete(projectId: ProjectId, idOrName: string, force: boolean): Promise<void> {
    const { store, clock } = this.#options
    const { id } = await this.get(projectId, idOrName)
    const outcome = await store.delete(id, force, clock.now())
    if (!outcome) throw new BerthError('pool_not_found', { pool: idOrName })
    if (outcome.leases > 0) throw new BerthError('pool_has_leases', { leases: outcome.leases })
  }

  async flush(projectId: ProjectId, idOrName: string): Promise<void> {
    const { id } = await this.get(projectId, idOrName)
    if (!(await this.#options.store.flush(id, this.#options.clock.now())))
      throw new BerthError('pool_not_found', { pool: idOrName })
    await this.requestFill(id)
  }

  /** Replaces ready browsers that started with an older state of the profile, in pools that request it. */
  async refresh(profileId: ProfileId): Promise<void> {
    const { store, clock } = this.#options
    for (const id of await store.listRefreshedBy(profileId)) {
      await store.flush(id, clock.now())
      await this.requestFill(id)
    }
  }

  /** Not essential: pools that are not full are found every minute. */
  async requestFill(poolId: PoolId): Promise<void> {
    const { jobs, logger } = this.#options
    await jobs
      .enqueue(fillPool, { poolId })
      .catch((error: Error) =>
        logger.warn({ poolId, reason: error.message }, 'could not enqueue the filling of a pool; retrying'),
      )
  }

  async #changedColumns(pool: Pool, update: BrowserPoolUpdateRequest) {
    // A deleted profile is not looked up again.
    const { profile: named, ...others } = pool.config
    const config = updatedConfig({ ...others, ...(named && pool.profile_id && { profile: named }) }, update)
    const resolved = await this.#resolve(pool.project_id, config, update.region)
    return {
      ...(update.name && { name: update.name }),
      ...(update.size !== undefined && { size: update.size }),
      ...(update.fill_rate_per_minute !== undefined && { fill_rate_per_minute: update.fill_rate_per_minute }),
      refresh_on_profile_update: refreshes(pool, resolved.profile_id, update.refresh_on_profile_update),
      config: JSON.stringify(config),
      ...resolved,
    }
  }

  async #update(
    pool: Pool,
    {
      columns,
      discardsIdle,
      database,
    }: {
      readonly columns: Parameters<PoolStore['update']>[1]
      readonly discardsIdle: boolean
      readonly database: Database
    },
  ): Promise<boolean> {
    const { store, clock } = this.#options
    const updated = await store.update(pool, columns, database)
    if (!updated) return false
    const now = clock.now()
    if (discardsIdle) await store.allowBuilds(pool.id, await store.endUnleased(pool.id, now, database), database)
    await store.endSurplus(updated, now, database)
    return true
  }

  /** Rejects what this host does not support, and finds the resources that the configuration refers to. */
  async #resolve(projectId: ProjectId, config: PoolConfig, region: Region | undefined) {
    const { inputs, egress } = await this.#options.requests.select(projectId, namedRequest(config, region))
    return {
      extension_ids: JSON.stringify(inputs.extensions.map(({ id }) => id)),
      proxy: JSON.stringify(egress.proxy),
      profile_id: inputs.profile?.id ?? null,
    }
  }
}

/**
 * With a changed profile, updates are followed unless the request disables it. With the same profile, the setting
 * stays.
 */
function refreshes(pool: Pool, profileId: ProfileId | null, asked: boolean | undefined): boolean {
  if (profileId === null && asked) {
    throw new BerthError('invalid_input', { reason: 'refresh_on_profile_update: needs a profile.' })
  }
  if (profileId === null) return false
  return asked ?? (profileId === pool.profile_id ? pool.refresh_on_profile_update : true)
}
