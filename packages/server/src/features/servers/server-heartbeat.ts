import type { Logger } from '@berth/runtime/process/logger.ts'
import type { KnownServer, ServerReport, ServerStore } from './server-store.ts'

interface ServerHeartbeatOptions {
  readonly servers: ServerStore
  readonly serverId: string
  readonly report: () => Promise<Omit<ServerReport, 'isDraining'>>
  /** Called with the present servers, including this one, whenever they or their addresses have changed. */
  readonly onServers?: (servers: readonly KnownServer[]) => Promise<void>
  readonly logger: Logger
}

/** Records periodically that this server is present, and how much room it has. */
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

  /** Whether the last heartbeat is so recent that no other server counts this one as gone. */
  get hasRecentHeartbeat(): boolean {
    return performance.now() - this.#writtenAt < (1000 * this.#options.servers.limits.lostAfterSeconds) / 2
  }

  /** Records a heartbeat immediately: from now on no other server counts this one as gone. */
  async start(intervalMilliseconds = 1000 * this.#options.servers.limits.heartbeatSeconds): Promise<void> {
    const { logger } = this.#options
    await this.#write()
    this.#timer = setInterval(() => {
      this.#write().catch((error: Error) =>
        logger.warn({ reason: error.message }, 'could not record the heartbeat of this server'),
      )
    }, intervalMilliseconds)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Records that this server is about to stop, and continues the heartbeat. */
  async drain(): Promise<void> {
    this.#isDraining = true
    await this.#write()
  }

  /** Records that this server has stopped. */
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
