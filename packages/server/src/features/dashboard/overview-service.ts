import type { OrganizationId } from '@berth/contract/common/ids.ts'
import type { Overview } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Caller } from '../../access/caller.ts'
import type { Driver } from '../../drivers/driver.ts'
import type { OverviewStore } from './overview-store.ts'

interface OverviewServiceOptions {
  readonly store: OverviewStore
  /** Oldest first. */
  readonly listOrganizations: () => Promise<readonly { readonly id: OrganizationId }[]>
  readonly driver: Pick<Driver, 'freeRoom'>
  readonly clock: Clock
}

export class OverviewService {
  readonly #options: OverviewServiceOptions

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
      hours: hours.map(({ at, started, sessions, browserSeconds }) => ({
        at: at.toISOString(),
        started,
        sessions,
        browser_seconds: browserSeconds,
      })),
      room: isOperator ? { sessions: room?.sessions ?? null, memory_bytes: room?.memoryBytes ?? null } : null,
    }
  }

  /** What other organizations have used is nobody's business but the operator's, who has the first organization. */
  async #isOperator({ organizationId, keyProjectId }: Caller): Promise<boolean> {
    if (keyProjectId !== null) return false
    const [first] = await this.#options.listOrganizations()
    return first?.id === organizationId
  }
}
