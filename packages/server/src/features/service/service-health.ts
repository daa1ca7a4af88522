import { within } from '@berth/runtime/async/deadline.ts'
import { sql } from 'kysely'
import type { Database } from '../../database/database.ts'
import type { Driver } from '../../drivers/driver.ts'

const databaseLimitMilliseconds = 2_000

interface ServiceHealthOptions {
  readonly database: Database
  readonly driver: Driver
  readonly egressIsUp: () => boolean
  readonly version: string
}

/** Checks the components that sessions need. */
export class ServiceHealth {
  readonly #options: ServiceHealthOptions

  constructor(options: ServiceHealthOptions) {
    this.#options = options
  }

  async check() {
    const { driver, egressIsUp, version } = this.#options
    const [databaseAnswers, driverProblem] = await Promise.all([this.#databaseAnswers(), driver.problem()])
    const database = databaseAnswers ? ('ok' as const) : ('unreachable' as const)
    const machines = driverProblem === undefined ? ('ok' as const) : ('unavailable' as const)
    const egress = egressIsUp() ? ('ok' as const) : ('unreachable' as const)
    const isWell = databaseAnswers && driverProblem === undefined && egress === 'ok'
    return { status: isWell ? ('ok' as const) : ('degraded' as const), version, database, driver: machines, egress }
  }

  /** Describes what prevents this server from handling requests, if another server may be able to. */
  async findObstacle(): Promise<string | undefined> {
    return (await this.#databaseAnswers()) ? undefined : 'the database does not answer'
  }

  async #databaseAnswers(): Promise<boolean> {
    return within(databaseLimitMilliseconds, sql`select 1`.execute(this.#options.database)).then(
      () => true,
      () => false,
    )
  }
}
