import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '@berth/runtime/process/logger.ts'
import pg from 'pg'
import { StartError } from '../start-error.ts'

/** An arbitrary number that no other advisory lock uses. */
const lockNumber = 7_302
const pauseMilliseconds = 250
/** PostgreSQL needs a moment to notice a killed server. */
const startPatienceMilliseconds = 3_000
/** PostgreSQL may keep a broken connection open until it notices. */
const lossPatienceMilliseconds = 60_000

interface DatabaseLockOptions {
  readonly connectionString: string
  readonly serverId: string
  /** Whether other servers may use the database as well. */
  readonly isShared: boolean
  readonly logger: Logger
  /** Another server has taken the database: this one must stop. */
  readonly onLost: () => void
  readonly startPatience?: number
  readonly lossPatience?: number
}

type Outcome = 'taken' | keyof typeof refusals

const refusals = {
  'used by others':
    'another berth server uses this database: stop that one, or set DATABASE_URL to another database for this one. ' +
    'To run several servers on one database, start each of them with BERTH_SERVER_ADDRESS',
  'used by one alone':
    'a berth server without BERTH_SERVER_ADDRESS uses this database for itself alone: stop it, and start it with ' +
    'BERTH_SERVER_ADDRESS as well',
  'same server':
    'another berth server with the same driver-id uses this database: its data folder is a copy. ' +
    'Start this server with an empty data folder (--data-dir)',
} as const

/**
 * Prevents servers from using a database together when they must not: either one server uses it alone, or several share
 * it, each with its own data folder. The locks are PostgreSQL's and belong to a connection, so they are released when
 * the process ends, however it ends. A broken connection is reopened: while the database is unavailable, nobody else
 * can take the lock either.
 */
export class DatabaseLock {
  readonly #options: DatabaseLockOptions
  readonly #closing = new AbortController()
  #holder: pg.Client | undefined

  private constructor(options: DatabaseLockOptions) {
    this.#options = options
  }

  /** Rejects with a StartError that names the conflicting server. */
  static async take(options: DatabaseLockOptions): Promise<DatabaseLock> {
    const lock = new DatabaseLock(options)
    const deadline = performance.now() + (options.startPatience ?? startPatienceMilliseconds)
    for (;;) {
      const outcome = await lock.#try()
      if (outcome === 'taken') return lock
      if (performance.now() > deadline) throw new StartError(refusals[outcome], 75)
      await delay(pauseMilliseconds)
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#holder?.end()
  }

  /** Rejects when the database does not respond. */
  async #try(): Promise<Outcome> {
    const { connectionString } = this.#options
    const client = new pg.Client({ connectionString, application_name: 'berth lock', keepAlive: true })
    client.on('error', () => {}) // 'end' follows.
    await client.connect()
    const outcome = await this.#lock(client)
    if (outcome !== 'taken' || this.#closing.signal.aborted) {
      await client.end()
      return outcome === 'taken' ? 'used by others' : outcome
    }
    client.once('end', () => void this.#retake())
    this.#holder = client
    return 'taken'
  }

  async #lock(client: pg.Client): Promise<Outcome> {
    const { serverId, isShared } = this.#options
    const ask = async (lock: string, ...values: readonly unknown[]) => {
      const { rows } = await client.query<{ taken: boolean }>(`select ${lock} as taken`, [...values])
      return rows[0]?.taken === true
    }
    if (!isShared) return (await ask('pg_try_advisory_lock($1)', lockNumber)) ? 'taken' : 'used by others'
    if (!(await ask('pg_try_advisory_lock_shared($1)', lockNumber))) return 'used by one alone'
    const isOnlyOne = await ask("pg_try_advisory_lock(hashtextextended('berth server ' || $1::text, 0))", serverId)
    return isOnlyOne ? 'taken' : 'same server'
  }

  async #retake(): Promise<void> {
    const { logger, onLost, lossPatience = lossPatienceMilliseconds } = this.#options
    let refusedSince: number | undefined
    while (!this.#closing.signal.aborted) {
      const outcome = await this.#try().catch(() => undefined)
      if (outcome === 'taken') return
      if (outcome === undefined) refusedSince = undefined
      else refusedSince ??= performance.now()
      if (refusedSince !== undefined && performance.now() - refusedSince > lossPatience) {
        logger.fatal('another berth server uses the database; stopping')
        onLost()
        return
      }
      await delay(pauseMilliseconds)
    }
  }
}
