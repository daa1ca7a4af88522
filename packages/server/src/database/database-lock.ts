import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '@berth/runtime/process/logger.ts'
import pg from 'pg'
import { StartError } from '../start-error.ts'

/** Any number that no other part locks. */
const lockNumber = 7_302
const pauseMilliseconds = 250
/** PostgreSQL takes a moment to notice that a killed server has gone. */
const startPatienceMilliseconds = 3_000
/** A connection that broke may live on at PostgreSQL's end until that has noticed. */
const lossPatienceMilliseconds = 60_000

interface DatabaseLockOptions {
  readonly connectionString: string
  readonly logger: Logger
  /** Another server has taken the database: this one must stop. */
  readonly onLost: () => void
  readonly startPatience?: number
  readonly lossPatience?: number
}

/**
 * Makes this process the only server of the database. The lock is PostgreSQL's and belongs to a connection, so that it
 * is free when the process has ended, however it ends. A connection that breaks is made anew: while the database is away
 * nobody else can take it either.
 */
export class DatabaseLock {
  readonly #options: DatabaseLockOptions
  readonly #closing = new AbortController()
  #holder: pg.Client | undefined

  private constructor(options: DatabaseLockOptions) {
    this.#options = options
  }

  /** Rejects with a StartError when another server holds the lock. */
  static async take(options: DatabaseLockOptions): Promise<DatabaseLock> {
    const lock = new DatabaseLock(options)
    const deadline = performance.now() + (options.startPatience ?? startPatienceMilliseconds)
    while (!(await lock.#try())) {
      if (performance.now() > deadline) {
        throw new StartError(
          'another berth server uses this database: stop that one, or set DATABASE_URL to another database for this one',
          75,
        )
      }
      await delay(pauseMilliseconds)
    }
    return lock
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#holder?.end()
  }

  /** Whether the lock was free. Rejects when the database does not answer. */
  async #try(): Promise<boolean> {
    const { connectionString } = this.#options
    const client = new pg.Client({ connectionString, application_name: 'berth lock', keepAlive: true })
    client.on('error', () => {}) // Its end follows.
    await client.connect()
    const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [lockNumber])
    if (!rows[0]?.taken || this.#closing.signal.aborted) {
      await client.end()
      return false
    }
    client.once('end', () => void this.#retake())
    this.#holder = client
    return true
  }

  async #retake(): Promise<void> {
    const { logger, onLost, lossPatience = lossPatienceMilliseconds } = this.#options
    let refusedSince: number | undefined
    while (!this.#closing.signal.aborted) {
      const isTaken = await this.#try().catch(() => undefined)
      if (isTaken) return
      if (isTaken === undefined) refusedSince = undefined
      else refusedSince ??= performance.now()
      if (refusedSince !== undefined && performance.now() - refusedSince > lossPatience) {
        logger.fatal('another berth server has taken the database; stopping')
        onLost()
        return
      }
      await delay(pauseMilliseconds)
    }
  }
}
