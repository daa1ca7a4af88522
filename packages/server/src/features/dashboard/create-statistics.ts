import type { ProjectId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { CreateStore, HourOfCreates } from './create-store.ts'
import { noTimes, withTime } from './create-times.ts'

const gatherMilliseconds = 5_000
const maxGathered = 1_000

/** The result of a create. */
interface CreateOutcome {
  readonly milliseconds: number
  readonly isFromReserve: boolean
  readonly hasFailed: boolean
}

interface CreateStatisticsOptions {
  readonly store: CreateStore
  readonly clock: Clock
  readonly logger: Logger
}

/** Counts creates by project and hour. Writes the counts every few seconds, so that no create waits for it. */
export class CreateStatistics {
  readonly #options: CreateStatisticsOptions
  #gathered = new Map<string, HourOfCreates>()
  #timer: NodeJS.Timeout | undefined

  constructor(options: CreateStatisticsOptions) {
    this.#options = options
  }

  note(projectId: ProjectId, { milliseconds, isFromReserve, hasFailed }: CreateOutcome): void {
    const at = new Date(this.#options.clock.now().setUTCMinutes(0, 0, 0))
    const key = `${projectId} ${at.getTime()}`
    const { reserveHits, errors, durations } = this.#gathered.get(key) ?? {
      reserveHits: 0,
      errors: 0,
      durations: noTimes,
    }
    if (this.#gathered.size >= maxGathered && !this.#gathered.has(key)) void this.flush()
    this.#gathered.set(key, {
      projectId,
      at,
      reserveHits: reserveHits + (isFromReserve ? 1 : 0),
      errors: errors + (hasFailed ? 1 : 0),
      durations: hasFailed ? durations : withTime(durations, milliseconds),
    })
    this.#timer ??= setTimeout(() => void this.flush(), gatherMilliseconds).unref()
  }

  /** Writes the collected counts. Without a database they are lost, which harms nothing. */
  async flush(): Promise<void> {
    const { store, clock, logger } = this.#options
    clearTimeout(this.#timer)
    this.#timer = undefined
    const hours = [...this.#gathered.values()]
    this.#gathered = new Map()
    if (hours.length === 0) return
    await store
      .add(hours, clock.now())
      .catch((error: unknown) => logger.warn({ err: error }, 'could not store the statistics of creates'))
  }
}
