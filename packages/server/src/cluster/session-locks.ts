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

/** Has the changes of one session made one after another, in the order of the calls. */
export interface SessionLocks {
  run<Result>(id: SessionId, work: () => Promise<Result>): Promise<Result>
}

/**
 * Does so over all servers of a database. The locks are advisory ones of PostgreSQL, all on one connection of their own:
 * a change that waits for a slow browser holds no connection that others need, and what a killed server has locked is
 * free when PostgreSQL has noticed. Waiting is asking again, because the connection must not wait for one session.
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
        // One that broke has let go of it already.
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

  /** The one connection, made anew when it has broken. */
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
