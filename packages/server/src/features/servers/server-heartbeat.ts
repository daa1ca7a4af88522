import type { Logger } from '@berth/runtime/process/logger.ts'
import type { KnownServer, ServerReport, ServerStore } from './server-store.ts'

interface ServerHeartbeatOptions {
  readonly servers: ServerStore
  readonly serverId: string
  readonly report: () => Promise<ServerReport>
  /** Hears of the servers that are there, this one included, whenever they are others or elsewhere than before. */
  readonly onServers?: (servers: readonly KnownServer[]) => Promise<void>
  readonly logger: Logger
}

/** Tells again and again that this server is there, and what room it has. */
export class ServerHeartbeat {
  readonly #options: ServerHeartbeatOptions
  #timer: NodeJS.Timeout | undefined
  #known = ''

  constructor(options: ServerHeartbeatOptions) {
    this.#options = options
  }

  /** Tells at once: from now on nobody takes this server for gone. */
  async start(intervalMilliseconds: number): Promise<void> {
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

  async #tell(): Promise<void> {
    const { servers, serverId, report, onServers } = this.#options
    await servers.tell(serverId, await report())
    if (!onServers) return
    const present = await servers.listPresent()
    const known = JSON.stringify(present)
    if (known === this.#known) return
    await onServers(present)
    this.#known = known
  }
}
