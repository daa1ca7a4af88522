import { setTimeout as delay } from 'node:timers/promises'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { within } from '@berth/runtime/async/deadline.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Driver } from '../drivers/driver.ts'
import type { LifecycleEvents } from '../features/sessions/machines/lifecycle-events.ts'
import type { SessionMachines } from '../features/sessions/machines/session-machines.ts'
import type { SessionTelemetry } from '../features/telemetry/session-telemetry-service.ts'

/** Reading a count may take a connection to the machine. Pauses keep that to a tenth of the time. */
const pausesForEachRead = 9
/** A machine that does not respond delays the others by no more than this, twice. */
const longestMilliseconds = 1_000

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
  readonly #stop = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> | undefined
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
    this.#stop.abort()
  }

  /** Checks one session after another. Joins a round that is running. Never rejects. */
  checkAll(): Promise<void> {
    this.#round ??= this.#checkAll().finally(() => {
      this.#round = undefined
    })
    return this.#round
  }

  async #checkAll(): Promise<void> {
    const { machines, logger } = this.#options
    const { signal } = this.#stop
    for (const { id } of machines.list()) {
      if (signal.aborted) return
      const begin = performance.now()
      const check = this.check(id).catch((error: Error) =>
        logger.warn(
          { sessionId: id, reason: error.message },
          'could not read how many processes the kernel has killed',
        ),
      )
      await within(longestMilliseconds, check).catch(() => {})
      const pause = Math.min(longestMilliseconds, pausesForEachRead * (performance.now() - begin))
      await delay(pause, undefined, { signal }).catch(() => {})
    }
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
