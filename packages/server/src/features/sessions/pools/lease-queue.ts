import type { PoolId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Session } from '../records/session.ts'
import type { Lease } from './lease.ts'
import type { LeaseStore } from './lease-store.ts'

/** A waiting caller polls after this time although earlier callers come first, because these may be gone. */
const blockedMilliseconds = 1_000

interface Waiter {
  readonly ticket: number
  readonly lease: Lease
  /** Ends the wait and returns whether this call did. */
  readonly settle: (outcome: Session | Error | undefined) => boolean
}

interface WaitOptions {
  readonly limitMilliseconds: number
  readonly signal: AbortSignal
}

interface LeaseQueueOptions {
  readonly store: LeaseStore
  /** Whether the browser of a session can still be used. If not, it is ended. */
  readonly isUsable: (session: Session) => Promise<boolean>
  /** Returns a browser that came too late. */
  readonly giveBack: (session: Session) => Promise<void>
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * The callers of this server that wait for browsers. Tickets in the database define the order of all callers on all
 * servers. This class only polls when a browser may be available for them.
 */
export class LeaseQueue {
  readonly #options: LeaseQueueOptions
  readonly #waiting = new Map<PoolId, Waiter[]>()
  readonly #running = new Set<PoolId>()
  readonly #again = new Set<PoolId>()
  readonly #timers = new Map<PoolId, NodeJS.Timeout>()
  #isClosed = false

  constructor(options: LeaseQueueOptions) {
    this.#options = options
  }

  /** Leases a browser. Undefined if none is ready in time or the caller has disconnected. */
  async take(pool: PoolId, lease: Lease, { limitMilliseconds, signal }: WaitOptions): Promise<Session | undefined> {
    if (signal.aborted) return undefined
    const ready = await this.#claim(pool, lease, null)
    if (ready || limitMilliseconds === 0 || signal.aborted) return ready
    const { promise, resolve, reject } = Promise.withResolvers<Session | undefined>()
    let isOver = false
    const settle = (outcome: Session | Error | undefined) => {
      if (isOver) return false
      isOver = true
      if (outcome instanceof Error) reject(outcome)
      else resolve(outcome)
      return true
    }
    const waiter: Waiter = { ticket: await this.#options.store.addWaiter(pool), lease, settle }
    this.#add(pool, waiter)
    const leave = () => void settle(undefined)
    const timer = setTimeout(leave, limitMilliseconds)
    signal.addEventListener('abort', leave)
    if (signal.aborted || this.#isClosed) leave()
    // A browser may have become ready since.
    this.serve(pool)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', leave)
      this.#remove(pool, waiter)
      await this.#leave(waiter.ticket)
    }
  }

  /** Call when something in the pool has changed. */
  serve(pool: PoolId): void {
    if (!this.#waiting.has(pool)) return
    this.#again.add(pool)
    if (!this.#running.has(pool)) void this.#run(pool)
  }

  /** Call when anything may have changed. */
  serveAll(): void {
    for (const pool of this.#waiting.keys()) this.serve(pool)
  }

  /** Ends all waits. */
  close(): void {
    this.#isClosed = true
    for (const timer of this.#timers.values()) clearTimeout(timer)
    for (const waiters of this.#waiting.values()) for (const { settle } of waiters) settle(undefined)
  }

  async #run(pool: PoolId): Promise<void> {
    this.#running.add(pool)
    try {
      while (this.#again.delete(pool)) await this.#serve(pool)
    } catch (error) {
      this.#options.logger.warn({ reason: (error as Error).message }, 'could not serve callers that wait for a browser')
      this.#lookLater(pool)
    } finally {
      this.#running.delete(pool)
    }
  }

  async #serve(pool: PoolId): Promise<void> {
    for (const waiter of [...(this.#waiting.get(pool) ?? [])]) {
      const outcome = await this.#claim(pool, waiter.lease, waiter.ticket).catch(throwUnlessRefused)
      // Later callers come after this one.
      if (!outcome) return this.#look(pool)
      this.#remove(pool, waiter)
      const isTaken = waiter.settle(outcome)
      if (!isTaken && !(outcome instanceof Error)) await this.#options.giveBack(outcome)
    }
  }

  /** A killed server sends no notification, so callers after its own poll at intervals. */
  async #look(pool: PoolId): Promise<void> {
    const { exists, free } = await this.#options.store.queueState(pool)
    if (!exists)
      for (const { settle } of this.#waiting.get(pool) ?? []) settle(new BerthError('pool_not_found', { pool }))
    else if (free > 0) this.#lookLater(pool)
  }

  #lookLater(pool: PoolId): void {
    if (this.#timers.has(pool) || !this.#waiting.has(pool)) return
    const timer = setTimeout(() => {
      this.#timers.delete(pool)
      this.serve(pool)
    }, blockedMilliseconds)
    this.#timers.set(pool, timer.unref())
  }

  async #claim(pool: PoolId, lease: Lease, ticket: number | null): Promise<Session | undefined> {
    const { store, isUsable, clock } = this.#options
    for (;;) {
      const session = await store.claim(pool, lease, clock.now(), ticket)
      if (!session || (await isUsable(session))) return session
    }
  }

  #add(pool: PoolId, waiter: Waiter): void {
    const waiters = [...(this.#waiting.get(pool) ?? []), waiter]
    this.#waiting.set(
      pool,
      waiters.toSorted((one, other) => one.ticket - other.ticket),
    )
  }

  #remove(pool: PoolId, waiter: Waiter): void {
    const others = (this.#waiting.get(pool) ?? []).filter((other) => other !== waiter)
    if (others.length > 0) this.#waiting.set(pool, others)
    else this.#waiting.delete(pool)
  }

  /** Notifies all servers, so that later callers get available browsers. */
  async #leave(ticket: number): Promise<void> {
    await this.#options.store.removeWaiter(ticket).catch((error: Error) =>
      // The sweep of every minute removes it. Until then, later callers poll.
      this.#options.logger.warn({ reason: error.message }, 'could not remove a waiting caller from its queue'),
    )
  }
}

/** A name that is taken affects only its caller, and nobody who waits behind. */
function throwUnlessRefused(error: unknown): BerthError {
  if (error instanceof BerthError && error.code === 'session_name_taken') return error
  throw error
}
