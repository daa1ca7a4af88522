import { setTimeout as delay } from 'node:timers/promises'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { KeyedQueue } from '@berth/runtime/async/keyed-queue.ts'
import pg from 'pg'
import { asUnavailable } from '../database/database.ts'

const firstPauseMilliseconds = 20
const longestPauseMilliseconds = 500
const patienceMilliseconds = 30_000
const connectLimitMilliseconds = 5_000
const lockKey = "hashtextextended('berth session ' || $1::text, 0)"

/** Serialises the changes of one session, in the order of the calls. */
export interface SessionLocks {
  run<Result>(id: SessionId, work: () => Promise<Result>): Promise<Result>
}

/**
 * Serialises changes across all servers of a database. The locks are advisory locks of PostgreSQL, all on one separate
 * connection: a change that waits for a slow browser uses no connection that others need, and the locks of a killed
 * server are released when PostgreSQL notices. Waiting is polling, because the connection must not block for one
 * session.
 */
export class DatabaseSessionLocks implements SessionLocks {
  readonly #connectionString: string
  readonly #queue = new KeyedQueue<SessionId>()
  #connecting: Promise<pg.Client> | undefined

  constructor(connectionString: string) {
    this.#connectionString = connectionString
  }

  run<Result>(id: SessionId, work: () => Promise<Result>): Promise<Result> {
    return this.#queue.run(id, async () => {
      const connection = await this.#take(id)
      try {
        return await work()
      } finally {
        // A broken connection has released it already.
        await connection.query(`select pg_advisory_unlock(${lockKey})`, [id]).catch(() => {})
      }
    })
  }

  async close(): Promise<void> {
    await (await this.#connecting?.catch(() => undefined))?.end()
  }

  async #take(id: SessionId): Promise<pg.Client> {
    const deadline = performance.now() + patienceMilliseconds
    for (let pause = firstPauseMilliseconds; ; pause = Math.min(2 * pause, longestPauseMilliseconds)) {
      const connection = await this.#connect().catch(throwUnavailable)
      if (await take(connection, id).catch(throwUnavailable)) return connection
      if (performance.now() > deadline) {
        const cause = new Error('another server has been changing the session for 30 s')
        throw new BerthError('session_unreachable', undefined, { cause })
      }
      await delay(pause)
    }
  }

  /** The one connection, reopened after it breaks. */
  #connect(): Promise<pg.Client> {
    this.#connecting ??= this.#open()
    return this.#connecting
  }

  async #open(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#connectionString,
      application_name: 'berth session locks',
      keepAlive: true,
      connectionTimeoutMillis: connectLimitMilliseconds,
    })
    const forget = () => {
      this.#connecting = undefined
    }
    client.on('error', () => {}) // 'end' follows.
    client.once('end', forget)
    try {
      await client.connect()
    } catch (error) {
      forget()
      throw error
    }
    return client
  }
}

async function take(connection: pg.Client, id: SessionId): Promise<boolean> {
  const { rows } = await connection.query<{ taken: boolean }>(`select pg_try_advisory_lock(${lockKey}) as taken`, [id])
  return rows[0]?.taken === true
}

function throwUnavailable(error: Error): never {
  throw asUnavailable(error)
}
