import type { Logger } from '@berth/runtime/process/logger.ts'
import type { ServerStore } from './server-store.ts'

interface ServerHeartbeatOptions {
  readonly servers: ServerStore
  readonly serverId: string
  readonly logger: Logger
}

/** Tells again and again that this server is there. */
export class ServerHeartbeat {
  readonly #options: ServerHeartbeatOptions
  #timer: NodeJS.Timeout | undefined

  constructor(options: ServerHeartbeatOptions) {
    this.#options = options
  }

  /** Tells at once: from now on nobody takes this server for gone. */
  async start(intervalMilliseconds: number): Promise<void> {
    const { servers, serverId, logger } = this.#options
    await servers.tell(serverId)
    this.#timer = setInterval(() => {
      servers
        .tell(serverId)
        .catch((error: Error) =>
          logger.warn({ reason: error.message }, 'could not record the heartbeat of this server'),
        )
    }, intervalMilliseconds)
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
