import { type ApiKeyId, newId, type OrganizationId, type ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { ApiKeyCache } from '../../access/api-key-cache.ts'
import type { OrganizationCaller } from '../../access/caller.ts'
import { hashApiKey, maskApiKey, newApiKey } from '../../access/secrets.ts'
import type { Database } from '../../database/database.ts'
import type { ProjectService } from '../projects/project-service.ts'
import type { ApiKey, ApiKeyStore, KeyListing } from './api-key-store.ts'

const dayMilliseconds = 24 * 60 * 60 * 1000
const defaultOverlapDays = 7

interface ApiKeyServiceOptions {
  readonly store: ApiKeyStore
  readonly projects: ProjectService
  readonly keys: ApiKeyCache
  readonly clock: Clock
}

/** The properties of a new key. Null and absent are the same, except for the project. */
export interface NewApiKey {
  readonly name: string
  readonly daysToExpire: number | null | undefined
  readonly expiresAt?: Date | null | undefined
  /** Null: for the whole organization. Absent: the project of the caller's own key. */
  readonly projectId: string | null | undefined
}

interface RotationRequest {
  readonly daysToExpire: number | null | undefined
  readonly overlapDays: number | null | undefined
}

/** A new key. This is the only time when the key itself is available. */
export interface IssuedApiKey {
  readonly record: ApiKey
  readonly key: string
}

/** A key that does not exist before it is inserted. */
export interface PreparedApiKey {
  readonly key: string
  insert(database?: Database): Promise<ApiKey>
}

/** The creator of a key: another key or the operator. */
interface Creator {
  readonly id: ApiKeyId | OrganizationId
  readonly name: string | null
}

/** The rules of API keys. A caller of one project sees and creates only keys of that project. */
export class ApiKeyService {
  readonly #store: ApiKeyStore
  readonly #projects: ProjectService
  readonly #keys: ApiKeyCache
  readonly #clock: Clock

  constructor({ store, projects, keys, clock }: ApiKeyServiceOptions) {
    this.#store = store
    this.#projects = projects
    this.#keys = keys
    this.#clock = clock
  }

  async create(caller: OrganizationCaller, request: NewApiKey): Promise<IssuedApiKey> {
    const { organizationId, keyProjectId } = caller
    const projectId = request.projectId === undefined ? keyProjectId : request.projectId
    if (keyProjectId && projectId !== keyProjectId) {
      throw new BerthError('forbidden', { reason: 'project_id: this API key can only create keys of its own project.' })
    }
    return this.createAs(organizationId, { id: caller.keyId, name: caller.keyName }, { ...request, projectId })
  }

  /** Creates a key for the operator or an authorized caller. */
  async createAs(organizationId: OrganizationId, creator: Creator, request: NewApiKey): Promise<IssuedApiKey> {
    const { key, insert } = await this.prepare(organizationId, creator, request)
    return { key, record: await insert() }
  }

  /** Like `createAs`, in two steps, for callers that store the key together with something else. */
  async prepare(organizationId: OrganizationId, creator: Creator, request: NewApiKey): Promise<PreparedApiKey> {
    const { name, daysToExpire, projectId } = request
    const project = projectId ? await this.#projects.getActive(organizationId, projectId) : undefined
    const now = this.#clock.now()
    const expiresAt = expiryOf(request, now)
    const lifetimeDays = daysToExpire ?? (expiresAt && Math.ceil(daysBetween(now, expiresAt)))
    const key = newApiKey()
    const row = rowOf({ organizationId, projectId: project?.id ?? null, name, creator, now, lifetimeDays }, key)
    return { key, insert: (database) => this.#store.insert({ ...row, expires_at: expiresAt }, database) }
  }

  async list(caller: OrganizationCaller, listing: KeyListing, page: PageRequest): Promise<Page<ApiKey>> {
    return this.#store.list(caller, listing, page)
  }

  async get(caller: OrganizationCaller, id: string, includeDeleted: boolean): Promise<ApiKey> {
    return found(await this.#store.find(caller, id, includeDeleted ? 'all' : 'active'))
  }

  async rename(caller: OrganizationCaller, id: string, name: string): Promise<ApiKey> {
    return found(await this.#store.rename(caller, id, name))
  }

  async delete(caller: OrganizationCaller, id: string): Promise<void> {
    if (id === caller.keyId) {
      throw new BerthError('invalid_input', { reason: 'id: an API key cannot delete itself.' })
    }
    const isDeleted = await this.#store.delete(caller, id, this.#clock.now())
    this.#keys.clear()
    if (!isDeleted) throw new BerthError('api_key_not_found')
  }

  async rotate(caller: OrganizationCaller, id: string, request: RotationRequest): Promise<IssuedApiKey> {
    const now = this.#clock.now()
    const key = newApiKey()
    const lifetimeOf = (old: ApiKey) => (request.daysToExpire === undefined ? old.lifetime_days : request.daysToExpire)
    const record = await this.#store.rotate(caller, id, {
      successor: (old) => {
        const lifetimeDays = lifetimeOf(old)
        const creator = { id: caller.keyId, name: caller.keyName }
        const { organization_id: organizationId, project_id: projectId, name } = old
        return rowOf({ organizationId, projectId, name, creator, now, lifetimeDays }, key)
      },
      oldEndsAt: (old) => after(now, overlapDays(request, lifetimeOf(old))),
    })
    this.#keys.clear()
    return { record: found(record), key }
  }
}

interface KeyFacts {
  readonly organizationId: OrganizationId
  readonly projectId: ProjectId | null
  readonly name: string
  readonly creator: Creator
  readonly now: Date
  readonly lifetimeDays: number | null
}

function rowOf({ organizationId, projectId, name, creator, now, lifetimeDays }: KeyFacts, key: string) {
  return {
    id: newId('api-key', now),
    organization_id: organizationId,
    project_id: projectId,
    name,
    key_hash: hashApiKey(key),
    masked_key: maskApiKey(key),
    created_by_id: creator.id,
    created_by_name: creator.name,
    created_at: now,
    expires_at: lifetimeDays === null ? null : after(now, lifetimeDays),
    lifetime_days: lifetimeDays,
  }
}

function expiryOf({ daysToExpire, expiresAt }: NewApiKey, now: Date): Date | null {
  if (expiresAt === undefined || expiresAt === null) return daysToExpire ? after(now, daysToExpire) : null
  const refuse = (reason: string) => new BerthError('invalid_input', { reason: `expires_at: ${reason}.` })
  if (daysToExpire !== undefined && daysToExpire !== null) throw refuse('must not be given with days_to_expire')
  if (expiresAt <= now) throw refuse('must be in the future')
  return expiresAt
}

/** The default overlap is not longer than the lifetime of the new key. */
function overlapDays({ overlapDays }: RotationRequest, lifetimeDays: number | null): number {
  if (overlapDays === undefined || overlapDays === null) return Math.min(defaultOverlapDays, lifetimeDays ?? Infinity)
  if (lifetimeDays !== null && lifetimeDays < overlapDays) {
    const reason = `expire_in_days: must be at most ${lifetimeDays}, the lifetime of the new key in days.`
    throw new BerthError('invalid_input', { reason })
  }
  return overlapDays
}

function after(time: Date, days: number): Date {
  return new Date(time.getTime() + days * dayMilliseconds)
}

function daysBetween(start: Date, end: Date): number {
  return (end.getTime() - start.getTime()) / dayMilliseconds
}

function found(key: ApiKey | undefined): ApiKey {
  if (!key) throw new BerthError('api_key_not_found')
  return key
}
