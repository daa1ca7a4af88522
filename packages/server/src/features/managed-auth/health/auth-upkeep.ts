import type { Logger } from '@berth/runtime/process/logger.ts'
import type { HealthChecks } from './health-checks.ts'

interface AuthUpkeepOptions {
  readonly checks: Pick<HealthChecks, 'tend'>
  readonly logger: Logger
}

/** Polls for due checks every few seconds, because job schedules have a resolution of one minute. */
export class AuthUpkeep {
  readonly #options: AuthUpkeepOptions
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> = Promise.resolve()
  #isBusy = false

  constructor(options: AuthUpkeepOptions) {
    this.#options = options
  }

  start(intervalMilliseconds: number): void {
    this.#timer = setInterval(() => {
      if (!this.#isBusy) this.#round = this.#tend()
    }, intervalMilliseconds)
    this.#timer.unref()
  }

  async #tend(): Promise<void> {
    this.#isBusy = true
    try {
      await this.#options.checks.tend()
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'could not find due login checks; retrying')
    } finally {
      this.#isBusy = false
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#round
  }
}
