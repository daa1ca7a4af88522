import { EventEmitter } from 'node:events'
import type { PoolId, SessionId } from '@berth/contract/common/ids.ts'
import { retry } from '@berth/runtime/async/retry.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { type RawBuilder, sql } from 'kysely'
import pg from 'pg'
import { z } from 'zod'
import type { SessionState } from '../records/session-state.ts'

const channel = 'berth_pools'
const connectLimitMilliseconds = 5_000
const reconnecting = { firstPauseMilliseconds: 100, longestPauseMilliseconds: 5_000, patienceMilliseconds: Infinity }

/** What has become of a browser of a pool, or of a caller who waited for one. */
export interface PoolChange {
  readonly pool: PoolId
  readonly state: SessionState | 'removed' | 'waiter left'
  readonly session?: SessionId | undefined
  /** The server that has the session's machine. */
  readonly server?: string | undefined
}

interface PoolSignalMap {
  changed: [change: PoolChange]
  /** Changes before this may have been missed. */
  connected: []
}

interface PoolSignalsOptions {
  readonly connectionString: string
  readonly serverId: string
  readonly logger: Logger
}

const Payload = z.object({
  pool: z.string(),
  state: z.string(),
  session: z.string().optional(),
  server: z.string().optional(),
})

/**
 * Hears from the database what any server does with the browsers of pools. The connection that listens also shows the
 * other servers that this one is there: PostgreSQL notices the end of a killed server at once.
 */
export class PoolSignals extends EventEmitter<PoolSignalMap> {
  readonly #options: PoolSignalsOptions
  readonly #closing = new AbortController()
  #client: pg.Client | undefined

  constructor(options: PoolSignalsOptions) {
    super()
    this.#options = options
  }

  /** Resolves when it listens. A connection that breaks is made anew. */
  async start(): Promise<void> {
    await retry(() => this.#connect(), { ...reconnecting, signal: this.#closing.signal })
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#client?.end().catch(() => {})
  }

  async #connect(): Promise<void> {
    const { connectionString, serverId, logger } = this.#options
    const client = new pg.Client({
      connectionString,
      application_name: listenerName(serverId),
      keepAlive: true,
      connectionTimeoutMillis: connectLimitMilliseconds,
    })
    client.on('error', () => {}) // 'end' follows.
    client.on('notification', ({ payload }) => this.#take(payload ?? ''))
    await client.connect()
    this.#client = client
    await client.query(`listen ${channel}`)
    client.once('end', () => {
      if (this.#closing.signal.aborted) return
      logger.warn('the connection that hears of browser pools has broken; connecting again')
      this.start().catch(() => {}) // It only ends when this is closed.
    })
    if (this.#closing.signal.aborted) await client.end()
    else this.emit('connected')
  }

  #take(payload: string): void {
    this.emit('changed', Payload.parse(JSON.parse(payload)) as PoolChange)
  }
}

/** PostgreSQL cuts names of connections. */
function listenerName(serverId: string): string {
  return `berth pools ${serverId}`.slice(0, 63)
}

/** Whether the server with this id listens now, as a condition of a query. */
export function isListening(serverId: RawBuilder<string>): RawBuilder<boolean> {
  return sql<boolean>`exists (
    select from pg_stat_activity
    where datname = current_database() and application_name = left('berth pools ' || ${serverId}, 63)
  )`
}
