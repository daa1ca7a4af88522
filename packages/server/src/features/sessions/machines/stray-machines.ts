import { settleAll } from '@berth/runtime/async/settle-all.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Driver } from '../../../drivers/driver.ts'
import type { SessionMoves } from '../records/session-moves.ts'
import type { SessionMachines } from './session-machines.ts'

interface StrayMachinesOptions {
  readonly driver: Driver
  readonly moves: SessionMoves
  readonly machines: Pick<SessionMachines, 'remove'>
  readonly logger: Logger
}

/**
 * Finds shared machines that nobody will use: the server that started them is gone, and no session has them. They were
 * starting, belonged to its reserve, or ran an app.
 */
export class StrayMachines {
  readonly #options: StrayMachinesOptions

  constructor(options: StrayMachinesOptions) {
    this.#options = options
  }

  async remove(): Promise<void> {
    const { driver, moves, machines, logger } = this.#options
    // In this order: a server that starts a machine writes its row before the server can be gone.
    const starters = (await driver.listByServer?.()) ?? new Map()
    const servers = [...new Set(starters.values())].filter((server) => server !== undefined)
    const abandoned = await moves.listAbandoned(servers)
    const candidates = [...starters].flatMap(([id, server]) => (abandoned.has(server) ? [id] : []))
    if (candidates.length === 0) return
    await moves.forgetReserves(abandoned)
    const named = await moves.listNamed(candidates)
    const strays = candidates.filter((id) => !named.has(id))
    await settleAll(strays.map((id) => machines.remove(id)))
    if (strays.length > 0) logger.info({ machines: strays.length }, 'removed the machines of a lost server')
  }
}
