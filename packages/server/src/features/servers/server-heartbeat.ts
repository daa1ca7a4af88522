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

/** Tells again and again that this server is there, and what room it has. */
export class ServerHeartbeat {
  readonly #options: ServerHeartbeatOptions
  #timer: NodeJS.Timeout | undefined
  #telling: Promise<void> | undefined
  #known = ''
  #isDraining = false
  #toldAt = Number.NEGATIVE_INFINITY

  constructor(options: ServerHeartbeatOptions) {
    this.#options = options
  }

  /** Whether the others have heard of this server so lately that none takes it for gone. */
  get isHeard(): boolean {
    return performance.now() - this.#toldAt < (1000 * this.#options.servers.limits.lostAfterSeconds) / 2
  }

  /** Tells at once: from now on nobody takes this server for gone. */
  async start(intervalMilliseconds = 1000 * this.#options.servers.limits.heartbeatSeconds): Promise<void> {
    const { logger } = this.#options
    await this.#tell()
    this.#timer = setInterval(() => {
      this.#tell().catch((error: Error) =>
        logger.warn({ reason: error.message }, 'could not say that this server is there'),
      )
    }, intervalMilliseconds)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Tells that this server is about to end, and goes on telling that it is there. */
  async drain(): Promise<void> {
    this.#isDraining = true
    await this.#tell()
  }

  /** Tells that this server has ended. */
  async leave(): Promise<void> {
    this.close()
    await this.#telling?.catch(() => {})
    await this.#options.servers.leave(this.#options.serverId)
  }

  #tell(): Promise<void> {
    this.#telling = this.#tellOnce()
    return this.#telling
  }

  async #tellOnce(): Promise<void> {
    const { servers, serverId, report, onServers } = this.#options
    const at = performance.now()
    await servers.tell(serverId, { ...(await report()), isDraining: this.#isDraining })
    this.#toldAt = at
    if (!onServers) return
    const present = await servers.listPresent()
    const known = JSON.stringify(present)
    if (known === this.#known) return
    await onServers(present)
    this.#known = known
  }
}
