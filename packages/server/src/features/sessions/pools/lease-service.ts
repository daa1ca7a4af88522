import { configureAgent } from '@berth/contract/agent/agent-endpoints.ts'
import type { BrowserPoolAcquireRequest } from '@berth/contract/browser-pools/browser-pool.ts'
import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { applyLease } from '../../../jobs/declared-jobs.ts'
import type { JobQueue } from '../../../jobs/job-runner.ts'
import { updateTelemetry } from '../create/telemetry-selection.ts'
import type { SessionTerminator } from '../end/end-session.ts'
import type { SessionMachines } from '../machines/session-machines.ts'
import type { Session } from '../records/session.ts'
import type { SessionStore } from '../records/session-store.ts'
import type { SessionUpdater } from '../update/update-session.ts'
import type { LeaseSettings } from './lease.ts'
import { LeaseQueue } from './lease-queue.ts'
import type { LeaseReturns } from './lease-returns.ts'
import type { LeaseStore } from './lease-store.ts'
import type { PoolService } from './pool-service.ts'
import type { Pool } from './pool-store.ts'

/** Official clients wait one minute for a response, and then repeat the request. */
const longestWaitSeconds = 50
const shortestDefaultWaitSeconds = 10

interface LeaseServiceOptions {
  readonly pools: PoolService
  readonly store: LeaseStore
  readonly returns: LeaseReturns
  readonly sessions: SessionStore
  readonly machines: SessionMachines
  readonly terminator: SessionTerminator
  readonly updater: SessionUpdater
  readonly jobs: JobQueue
  readonly serverId: string
  readonly clock: Clock
  readonly logger: Logger
}

interface AcquireOptions {
  readonly projectId: ProjectId
  readonly idOrName: string
  readonly request: BrowserPoolAcquireRequest
  /** Aborts when the caller disconnects, even after the start of the response. */
  readonly signal: AbortSignal
}

interface ReleaseOptions {
  readonly projectId: ProjectId
  readonly idOrName: string
  readonly sessionId: string
  readonly reuse: boolean
}

/** Leases the browsers of pools to callers, and returns them. */
export class LeaseService {
  readonly #options: LeaseServiceOptions
  readonly queue: LeaseQueue

  constructor(options: LeaseServiceOptions) {
    this.#options = options
    this.queue = new LeaseQueue({
      store: options.store,
      isUsable: (session) => this.#isUsable(session),
      giveBack: (session) => this.#giveBack(session),
      clock: options.clock,
      logger: options.logger,
    })
  }

  /** Leases a browser. Undefined if none is ready in time. A caller that disconnects before the response gets none. */
  async acquire({ projectId, idOrName, request, signal }: AcquireOptions): Promise<Session | undefined> {
    const { pools, sessions } = this.#options
    const pool = await pools.get(projectId, idOrName)
    const { name, tags = {} } = request
    if (name && (await sessions.isNameTaken(projectId, name))) throw new BerthError('session_name_taken', { name })
    const limitMilliseconds = 1000 * Math.min(request.acquire_timeout_seconds ?? fillSeconds(pool), longestWaitSeconds)
    const session = await this.queue.take(pool.id, { name: name ?? null, tags }, { limitMilliseconds, signal })
    if (!session) return undefined
    const giveBack = () =>
      void this.#giveBack(session).catch((error: unknown) =>
        this.#options.logger.error({ err: error, sessionId: session.id }, 'could not return a browser to its pool'),
      )
    signal.addEventListener('abort', giveBack, { once: true })
    if (signal.aborted) {
      giveBack()
      return undefined
    }
    return this.#prepare(session, request)
  }

  /**
   * Returns a browser from its caller. A reused browser is ready as soon as its server has closed the last caller's
   * connections. Any other is ended, and the pool builds a new one.
   */
  async release({ projectId, idOrName, sessionId, reuse }: ReleaseOptions): Promise<void> {
    const { pools, store, returns, terminator, clock } = this.#options
    const { id: poolId } = await pools.get(projectId, idOrName)
    const id = sessionId as SessionId
    const session = reuse ? await store.beginReturn(poolId, id) : await store.beginEnd(poolId, id, clock.now())
    if (!session) throw new BerthError('session_not_leased', { session: sessionId })
    // Another server learns of it by the notification of the row's change.
    if (session.driver_id !== this.#options.serverId) return
    await (reuse ? returns.finish(id) : terminator.finish(id))
  }

  /**
   * Applies the settings of the lease to the running session, on the server that has its machine, unless the lease is
   * over.
   */
  async applyLease({ sessionId, leaseNumber, startUrl, hasTelemetry }: LeaseSettings): Promise<void> {
    const { sessions, updater, machines } = this.#options
    if (hasTelemetry) await updater.restore(sessionId)
    const session = await sessions.findActive(sessionId)
    if (!startUrl || session?.lease_number !== leaseNumber) return
    await machines.command(sessionId, configureAgent, { start_url: startUrl })
  }

  /** The response waits for the row, but not for the agent or the start page. */
  async #prepare(
    session: Session,
    { start_url: startUrl, telemetry: asked }: BrowserPoolAcquireRequest,
  ): Promise<Session> {
    const { sessions, jobs, serverId, logger } = this.#options
    const telemetry = updateTelemetry(session.telemetry, asked)
    if (!startUrl && telemetry === undefined) return session
    const { id, lease_number: leaseNumber, driver_id: server } = session
    const leased = await sessions.update(id, {
      ...(startUrl && { start_url: startUrl }),
      ...(telemetry !== undefined && { telemetry: telemetry && JSON.stringify(telemetry) }),
    })
    const settings = { sessionId: id, leaseNumber, startUrl: startUrl ?? '', hasTelemetry: telemetry !== undefined }
    const applied = server === serverId ? this.applyLease(settings) : jobs.enqueue(applyLease, settings, { server })
    applied.catch((error: unknown) => logger.warn({ err: error, sessionId: id }, 'could not prepare a leased browser'))
    return leased
  }

  /** A machine that has just died is ended, and another browser is used. */
  async #isUsable({ id, driver_id }: Session): Promise<boolean> {
    const { machines, terminator, serverId } = this.#options
    if (driver_id !== serverId || (machines.find(id) && !machines.hasGone(id))) return true
    await terminator.end(id)
    return false
  }

  async #giveBack({ id, pool_id, lease_number, driver_id }: Session): Promise<void> {
    const { store, returns, serverId } = this.#options
    if (!pool_id) return
    const session = await store.beginReturn(pool_id, id, lease_number)
    if (session && driver_id === serverId) await returns.finish(id)
  }
}

/** The time in which the fill rate fills the whole pool. */
function fillSeconds({ fill_rate_per_minute: rate }: Pool): number {
  return rate === 0 ? longestWaitSeconds : Math.max(shortestDefaultWaitSeconds, Math.ceil(6000 / rate))
}
