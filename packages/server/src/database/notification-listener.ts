import { retry } from '@berth/runtime/async/retry.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import pg from 'pg'

const connectLimitMilliseconds = 5_000
const reconnecting = { firstPauseMilliseconds: 100, longestPauseMilliseconds: 5_000, patienceMilliseconds: Infinity }

interface NotificationListenerOptions {
  readonly connectionString: string
  readonly channel: string
  /** The name of its connection, which other servers can see. */
  readonly name: string
  readonly onNotification: (payload: string) => void
  /** Called when it listens, initially or again: earlier notifications may have been missed. */
  readonly onConnected: () => void
  readonly logger: Logger
}

/** Receives notifications (NOTIFY) of other servers on a separate connection. Reopens a broken connection. */
export class NotificationListener {
  readonly #options: NotificationListenerOptions
  readonly #closing = new AbortController()
  #client: pg.Client | undefined

  constructor(options: NotificationListenerOptions) {
    this.#options = options
  }

  /** Resolves when it listens. */
  async start(): Promise<void> {
    await retry(() => this.#connect(), { ...reconnecting, signal: this.#closing.signal })
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#client?.end().catch(() => {})
  }

  async #connect(): Promise<void> {
    const { connectionString, channel, name, onNotification, onConnected, logger } = this.#options
    const client = new pg.Client({
      connectionString,
      application_name: name,
      keepAlive: true,
      connectionTimeoutMillis: connectLimitMilliseconds,
    })
    client.on('error', () => {}) // 'end' follows.
    client.on('notification', ({ payload }) => onNotification(payload ?? ''))
    await client.connect()
    this.#client = client
    await client.query(`listen ${channel}`)
    client.once('end', () => {
      if (this.#closing.signal.aborted) return
      logger.warn({ channel }, 'the connection for notifications of other servers has broken; reconnecting')
      this.start().catch(() => {}) // Ends only when this is closed.
    })
    if (this.#closing.signal.aborted) await client.end()
    else onConnected()
  }
}
