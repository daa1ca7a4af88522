import type { OrganizationId } from '@berth/contract/common/ids.ts'
import type { Overview } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Caller } from '../../access/caller.ts'
import type { Driver } from '../../drivers/driver.ts'
import type { Finding } from '../../host-checks/host-checks.ts'
import { noTimes, percentileOf } from './create-times.ts'
import type { OverviewStore } from './overview-store.ts'

interface OverviewServiceOptions {
  readonly store: OverviewStore
  /** Oldest first. */
  readonly listOrganizations: () => Promise<readonly { readonly id: OrganizationId }[]>
  readonly driver: Pick<Driver, 'freeRoom'>
  readonly clock: Clock
  /** The findings of `./berth doctor`. Absent if sessions do not run on this host. */
  readonly examineHost?: (() => Promise<readonly Finding[]>) | undefined
}

/** Each examination starts programs. */
const freshMilliseconds = 60_000

export class OverviewService {
  readonly #options: OverviewServiceOptions
  #examined: { readonly at: number; readonly findings: Promise<readonly Finding[]> } | undefined

  constructor(options: OverviewServiceOptions) {
    this.#options = options
  }

  async get(caller: Caller): Promise<Overview> {
    const { store, driver, clock } = this.#options
    const [hours, isOperator] = await Promise.all([
      store.listHours(caller.projectId, clock.now()),
      this.#isOperator(caller),
    ])
    const room = isOperator ? await driver.freeRoom() : undefined
    return {
      hours: hours.map(({ at, started, sessions, browserSeconds, reserveHits, errors, durations }) => ({
        at: at.toISOString(),
        started,
        sessions,
        browser_seconds: browserSeconds,
        reserve_hits: reserveHits,
        errors,
        create_p50_ms: percentileOf(durations ?? noTimes, 0.5),
        create_p99_ms: percentileOf(durations ?? noTimes, 0.99),
      })),
      findings: isOperator ? await this.#findings() : null,
      room: isOperator ? { sessions: room?.sessions ?? null, memory_bytes: room?.memoryBytes ?? null } : null,
    }
  }

  async #findings(): Promise<Overview['findings']> {
    const { examineHost, clock } = this.#options
    if (!examineHost) return []
    const now = clock.now().getTime()
    if (!this.#examined || now - this.#examined.at > freshMilliseconds) {
      this.#examined = { at: now, findings: examineHost() }
      // The next reader retries.
      this.#examined.findings.catch(() => (this.#examined = undefined))
    }
    return (await this.#examined.findings).map(({ name, verdict: { state, fact, ...rest } }) => ({
      name,
      state,
      fact,
      cure: 'cure' in rest ? rest.cure : null,
    }))
  }

  /**
   * Only the operator, who owns the first organization, may see the host and with it the usage of other organizations.
   */
  async #isOperator({ organizationId, keyProjectId }: Caller): Promise<boolean> {
    if (keyProjectId !== null) return false
    const [first] = await this.#options.listOrganizations()
    return first?.id === organizationId
  }
}
