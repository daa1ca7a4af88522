import type { Logger } from '@berth/runtime/process/logger.ts'
import type { KnownServer, ServerReport, ServerStore } from './server-store.ts'

interface ServerHeartbeatOptions {
  readonly servers: ServerStore
  readonly serverId: string
  readonly report: () => Promise<Omit<ServerReport, 'isDraining'>>
  /** Hears of the servers that are there, this one included, whenever they are others or elsewhere than before. */
  readonly onServers?: (servers: readonly KnownServer[]) => Promise<void>
  readonly logger: Logger
}

/** Writes periodically that this server is present, and what room it has. */
export class ServerHeartbeat {
  readonly #options: ServerHeartbeatOptions
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #known = ''
  #isDraining = false
  #writtenAt = Number.NEGATIVE_INFINITY

  constructor(options: ServerHeartbeatOptions) {
    this.#options = options
  }

  /** Whether the others have heard of this server so lately that none takes it for gone. */
  get isHeard(): boolean {
    return performance.now() - this.#writtenAt < (1000 * this.#options.servers.limits.lostAfterSeconds) / 2
  }

  /** Writes at once: from now on no other server counts this one as gone. */
  async start(intervalMilliseconds = 1000 * this.#options.servers.limits.heartbeatSeconds): Promise<void> {
    const { logger } = this.#options
    await this.#write()
    this.#timer = setInterval(() => {
      this.#write().catch((error: Error) =>
        logger.warn({ reason: error.message }, 'could not say that this server is there'),
      )
    }, intervalMilliseconds)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Writes that this server is about to end, and continues the heartbeat. */
  async drain(): Promise<void> {
    this.#isDraining = true
    await this.#write()
  }

  /** Writes that this server has ended. */
  async leave(): Promise<void> {
    this.close()
    await this.#writing?.catch(() => {})
    await this.#options.servers.leave(this.#options.serverId)
  }

  #write(): Promise<void> {
    this.#writing = this.#writeOnce()
    return this.#writing
  }

  async #writeOnce(): Promise<void> {
    const { servers, serverId, report, onServers } = this.#options
    const at = performance.now()
    await servers.tell(serverId, { ...(await report()), isDraining: this.#isDraining })
    this.#writtenAt = at
    if (!onServers) return
    const present = await servers.listPresent()
    const known = JSON.stringify(present)
    if (known === this.#known) return
    await onServers(present)
    this.#known = known
  }
}
