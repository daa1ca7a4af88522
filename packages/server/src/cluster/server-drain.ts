import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { ServerHeartbeat } from '../features/servers/server-heartbeat.ts'
import type { SessionHandovers } from '../features/sessions/machines/session-handovers.ts'

const pollMilliseconds = 250
/** The time that load balancers need to notice that this server is not ready. */
const noticeMilliseconds = 3_000
const endClientsMilliseconds = 2_500

interface ServerDrainOptions {
  readonly heartbeat: Pick<ServerHeartbeat, 'drain'>
  readonly handovers: Pick<SessionHandovers, 'handOverAll'> | undefined
  /** How long open connections of clients may continue. With 0, the drain does not wait. */
  readonly limitMilliseconds: number
  /** The number of open requests and WebSockets. */
  readonly countOpen: () => number
  /** Tells the clients of WebSockets to reconnect. */
  readonly restartClients: () => void
  readonly logger: Logger
}

/**
 * The first part of a graceful shutdown: other servers take over the sessions, and open requests and connections may
 * finish. Meanwhile the server still serves new requests.
 */
export class ServerDrain {
  readonly #options: ServerDrainOptions
  #isOver: boolean

  constructor(options: ServerDrainOptions) {
    this.#options = options
    this.#isOver = options.limitMilliseconds === 0
  }

  /** Whether requests may be rejected now. */
  get isOver(): boolean {
    return this.#isOver
  }

  async run(): Promise<void> {
    const { heartbeat, handovers, limitMilliseconds, logger } = this.#options
    if (handovers || !this.#isOver) {
      await heartbeat.drain().catch((error: Error) => {
        logger.warn({ reason: error.message }, 'could not record that this server is stopping')
      })
    }
    const begunAt = performance.now()
    const [notice, limit] = [Math.min(noticeMilliseconds, limitMilliseconds), limitMilliseconds]
    for (;;) {
      await this.#handOverAll()
      const elapsed = performance.now() - begunAt
      if (elapsed >= limit || (elapsed >= notice && this.#options.countOpen() === 0)) break
      await delay(Math.min(pollMilliseconds, limit - elapsed))
    }
    if (!this.#isOver) await this.#endClients()
    this.#isOver = true
  }

  /** Includes sessions that were created since the last call. */
  async #handOverAll(): Promise<void> {
    const { handovers, logger } = this.#options
    await handovers?.handOverAll().catch((error: Error) => {
      logger.warn({ reason: error.message }, 'could not hand sessions over to other servers; retrying')
    })
  }

  async #endClients(): Promise<void> {
    const { countOpen, restartClients, logger } = this.#options
    const open = countOpen()
    if (open === 0) return
    logger.info({ open }, 'closing the remaining connections of clients')
    restartClients()
    for (
      const deadline = performance.now() + endClientsMilliseconds;
      countOpen() > 0 && performance.now() < deadline;
    ) {
      await delay(pollMilliseconds)
    }
  }
}
