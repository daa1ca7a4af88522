import type { SessionId } from '@berth/contract/common/ids.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Driver } from '../drivers/driver.ts'
import type { LifecycleEvents } from '../features/sessions/machines/lifecycle-events.ts'
import type { SessionMachines } from '../features/sessions/machines/session-machines.ts'
import type { SessionTelemetry } from '../features/telemetry/session-telemetry-service.ts'

interface MemoryWatchOptions {
  readonly driver: Driver
  readonly machines: SessionMachines
  readonly telemetry: SessionTelemetry
  readonly events: LifecycleEvents
  readonly logger: Logger
}

/**
 * Notices when a session has reached its memory limit and the kernel has killed some of its processes. Usually that is
 * a page, which shows an error to its user and reports nothing.
 */
export class MemoryWatch {
  readonly #options: MemoryWatchOptions
  readonly #seen = new Map<SessionId, number>()
  #timer: NodeJS.Timeout | undefined
  #total = 0

  constructor(options: MemoryWatchOptions) {
    this.#options = options
    options.events.on('sessionEnded', (id) => this.#seen.delete(id))
  }

  /** The number of processes killed this way, of all sessions since the start of this server. */
  get total(): number {
    return this.#total
  }

  start(intervalMilliseconds: number): void {
    this.#timer = setInterval(() => void this.checkAll(), intervalMilliseconds)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  async checkAll(): Promise<void> {
    await Promise.all(this.#options.machines.list().map(({ id }) => this.check(id)))
  }

  /** Checks one session. Also works after its machine has ended, until it is removed. */
  async check(id: SessionId): Promise<void> {
    const { driver, machines, telemetry, logger } = this.#options
    const machine = machines.find(id)
    if (!machine) return
    const kills = await driver.countMemoryKills(machine.id)
    const fresh = kills - (this.#seen.get(id) ?? 0)
    if (fresh <= 0) return
    this.#seen.set(id, kills)
    this.#total += fresh
    telemetry.reportMemoryKills(id, fresh)
    logger.warn(
      { sessionId: id, processes: fresh },
      'a session reached its memory limit, and the kernel killed processes',
    )
  }
}
