import type { Logger } from '@berth/runtime/process/logger.ts'
import type { ServerStore } from '../features/servers/server-store.ts'
import type { StrayMachines } from '../features/sessions/machines/stray-machines.ts'

interface LostSessionsOptions {
  readonly servers: ServerStore
  readonly serverId: string
  /**
   * Set when machines are shared: sessions then move to other servers, and the remaining machines of a lost server must
   * be removed.
   */
  readonly strayMachines: StrayMachines | undefined
  readonly logger: Logger
}

/** Ends the sessions of lost servers. Otherwise they would be shown as active forever. */
export class LostSessions {
  readonly #options: LostSessionsOptions

  constructor(options: LostSessionsOptions) {
    this.#options = options
  }

  async end(): Promise<void> {
    const { servers, serverId, strayMachines, logger } = this.#options
    const ended = strayMachines ? 0 : await servers.endLostSessions(serverId)
    await strayMachines?.remove()
    await servers.forgetGone()
    if (ended > 0) logger.warn({ sessions: ended }, 'ended the sessions of a lost server')
  }
}
