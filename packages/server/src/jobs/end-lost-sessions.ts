import type { Logger } from '@berth/runtime/process/logger.ts'
import type { ServerStore } from '../features/servers/server-store.ts'

interface LostSessionsOptions {
  readonly servers: ServerStore
  readonly serverId: string
  readonly logger: Logger
}

/** Ends the sessions of lost servers. Otherwise they would be shown as active forever. */
export class LostSessions {
  readonly #options: LostSessionsOptions

  constructor(options: LostSessionsOptions) {
    this.#options = options
  }

  async end(): Promise<void> {
    const { servers, serverId, logger } = this.#options
    const ended = await servers.endLostSessions(serverId)
    await servers.forgetGone()
    if (ended > 0) logger.warn({ sessions: ended }, 'ended the sessions of a server that is gone')
  }
}
