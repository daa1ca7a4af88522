import type { OrganizationId, ProjectId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { RawBuilder } from 'kysely'
import { LRUCache } from 'lru-cache'
import type { OrganizationCaller } from '../../access/caller.ts'
import { requireOrganizationKey } from '../../access/require-organization-key.ts'
import type { Database } from '../../database/database.ts'
import type { LimitStore, ProjectUse, RequestCount } from './limit-store.ts'

/** A slot becomes free whenever a session ends, which cannot be predicted. */
const slotRetrySeconds = 5
const windowMilliseconds = 60_000
const maxCounted = 10_000
/** A crash loses the counts of this time, which is harmless. */
const noteMilliseconds = 100

/** The operator's defaults for organizations without limits of their own. */
export interface LimitsConfig {
  readonly maxSessions: number
  /** The limit of concurrent invocations for an organization without its own. */
  readonly maxInvocations: number
  readonly maxInvocationsPerApp: number
  /** Per limited operation and organization. 0 means no limit. */
  readonly requestsPerMinute: number
  /** The limit of managed auth connections of an organization. Null: no limit. */
  readonly maxAuthConnections: number | null
  readonly minHealthCheckSeconds: number
}

export interface CurrentLimits {
  readonly maxSessions: number
  readonly projectDefault: number | null
  readonly used: number
  readonly vaults: number
  readonly maxInvocations: number
  readonly maxInvocationsPerApp: number
  readonly authConnections: number
  readonly maxAuthConnections: number | null
  readonly minHealthCheckSeconds: number
}

/** How many requests of a limited operation remain in this minute. */
export interface RequestAllowance {
  readonly limit: number
  readonly remaining: number
  /** Set for a request beyond the limit. */
  readonly retryAfterSeconds: number | undefined
}

interface LimitServiceOptions {
  readonly store: LimitStore
  readonly config: LimitsConfig
  readonly clock: Clock
  /** Whether other servers count requests in the same database. */
  readonly isShared: boolean
}

/** Requests of an organization for one operation in one minute, as the only server counts them. */
interface CountedRequests {
  readonly window: Date
  /** As the database has counted it. */
  readonly first: Promise<RequestCount>
  /** How many have followed. */
  more: number
  /** How many of these the database has been told of. */
  noted: number
}

/**
 * Enforces how many sessions an organization and its projects may have at once, and how many requests they may send.
 */
export class LimitService {
  readonly #store: LimitStore
  readonly #config: LimitsConfig
  readonly #clock: Clock
  readonly #isShared: boolean
  readonly #counted = new LRUCache<string, CountedRequests>({ max: maxCounted })

  constructor({ store, config, clock, isShared }: LimitServiceOptions) {
    this.#store = store
    this.#config = config
    this.#clock = clock
    this.#isShared = isShared
  }

  get minHealthCheckSeconds(): number {
    return this.#config.minHealthCheckSeconds
  }

  async read(organizationId: OrganizationId): Promise<CurrentLimits> {
    const { organization, ...read } = await this.#store.read(organizationId)
    const { maxSessions, maxInvocations, maxInvocationsPerApp, maxAuthConnections, minHealthCheckSeconds } =
      this.#config
    return {
      maxSessions: organization ?? maxSessions,
      ...read,
      maxInvocations,
      maxInvocationsPerApp,
      maxAuthConnections,
      minHealthCheckSeconds,
    }
  }

  /** Zero removes the limit. Undefined leaves it unchanged. */
  async setProjectDefault(caller: OrganizationCaller, limit: number | undefined): Promise<void> {
    requireOrganizationKey(caller)
    if (limit === undefined) return
    const { maxSessions } = await this.read(caller.organizationId)
    if (limit > maxSessions) {
      const reason = `default_project_max_concurrent_sessions: must be at most ${maxSessions}, the limit of the organization.`
      throw new BerthError('invalid_input', { reason })
    }
    await this.#store.setProjectDefault(caller.organizationId, limit || null)
  }

  /**
   * Creates something that occupies a session slot, if one is free. Of two concurrent requests for the last slot, one
   * gets it.
   */
  async takeSlot<Made>(projectId: ProjectId, make: (database: Database) => Promise<Made>): Promise<Made> {
    return this.#store.reserve(projectId, (use, database) => {
      this.#requireSlots(use, 1)
      return make(database)
    })
  }

  /** Like `takeSlot`, as a condition for a statement that does everything: true if a slot is free. */
  takesSlot(projectId: ProjectId): RawBuilder<boolean> {
    return this.#store.takesSlot(projectId, this.#config.maxSessions)
  }

  /** Like `takeSlot`, for an invocation of an app. */
  async takeInvocationSlot<Made>(
    projectId: ProjectId,
    appName: string,
    make: (database: Database) => Promise<Made>,
  ): Promise<Made> {
    const { maxInvocations, maxInvocationsPerApp } = this.#config
    return this.#store.reserveInvocation(projectId, appName, (use, database) => {
      const check = (owner: 'organization' | 'project' | 'app', used: number, limit: number) => {
        if (used >= limit) throw new BerthError('invocation_limit_reached', { owner, limit })
      }
      check('organization', use.usedByOrganization, maxInvocations)
      check('project', use.usedByProject, use.project ?? maxInvocations)
      check('app', use.usedByApp, maxInvocationsPerApp)
      return make(database)
    })
  }

  /** Like `takeSlot`, for a connection of managed auth. */
  async takeConnectionSlot<Made>(projectId: ProjectId, make: (database: Database) => Promise<Made>): Promise<Made> {
    return this.#store.reserveConnection(projectId, (used, database) => {
      const { maxAuthConnections: limit } = this.#config
      if (limit === null || used < limit) return make(database)
      const reason = `The organization has ${limit} connections, which is its limit. Delete one first.`
      throw new BerthError('insufficient_plan', { reason })
    })
  }

  /** Changes how many session slots are occupied. Additional ones must be free. */
  async changeSlots<Made>(projectId: ProjectId, change: (database: Database) => Promise<Made>): Promise<Made> {
    return this.#store.reserve(projectId, async (before, database, readAgain) => {
      const made = await change(database)
      const use = await readAgain()
      if (use.usedByProject > before.usedByProject) this.#requireSlots(use, 0)
      return made
    })
  }

  #requireSlots(
    { organization, projectDefault, project, usedByOrganization, usedByProject }: ProjectUse,
    more: number,
  ): void {
    const ofOrganization = organization ?? this.#config.maxSessions
    const ofProject = project ?? projectDefault ?? ofOrganization
    if (usedByOrganization + more > ofOrganization) throw limitReached('organization', ofOrganization)
    if (usedByProject + more > ofProject) throw limitReached('project', ofProject)
  }

  /** Counts a request of the organization in the current minute. Returns undefined when there is no limit. */
  async countRequest(organizationId: OrganizationId, operation: string): Promise<RequestAllowance | undefined> {
    const limit = this.#config.requestsPerMinute
    if (limit === 0) return undefined
    const now = this.#clock.now().getTime()
    const window = new Date(now - (now % windowMilliseconds))
    const count = this.#isShared ? this.#store.countRequest.bind(this.#store) : this.#countAlone.bind(this)
    const { requests, windowStart } = await count(organizationId, operation, window)
    const secondsLeft = Math.max(1, Math.ceil((windowStart.getTime() + windowMilliseconds - now) / 1000))
    return {
      limit,
      remaining: Math.max(0, limit - requests),
      retryAfterSeconds: requests > limit ? secondsLeft : undefined,
    }
  }

  /** Only the first request of a minute waits for the database. This server knows all later ones. */
  async #countAlone(organizationId: OrganizationId, operation: string, window: Date): Promise<RequestCount> {
    const key = `${organizationId} ${operation}`
    const count = (requests: number) => this.#store.countRequest(organizationId, operation, window, requests)
    // After a failure, the next request waits for the database again.
    const forget = () => void this.#counted.delete(key)
    const known = this.#counted.get(key)
    if (!known || known.window < window) {
      const first = count(1)
      this.#counted.set(key, { window, first, more: 0, noted: 0 })
      first.catch(forget)
      return first
    }
    known.more += 1
    const { first, more, noted } = known
    if (more === noted + 1) {
      const note = () => {
        const added = known.more - known.noted
        known.noted = known.more
        count(added).catch(forget)
      }
      setTimeout(note, noteMilliseconds).unref()
    }
    const { requests, windowStart } = await first
    return { requests: requests + more, windowStart }
  }
}

function limitReached(owner: 'organization' | 'project', limit: number): BerthError {
  return new BerthError('session_limit_reached', { owner, limit }, { retryAfterSeconds: slotRetrySeconds })
}
