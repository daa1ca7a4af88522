import type { OrganizationId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { ApiKeyCache } from '../access/api-key-cache.ts'
import { newApiKey } from '../access/secrets.ts'
import type { Database } from '../database/database.ts'
import { ApiKeyService } from '../features/api-keys/api-key-service.ts'
import { ApiKeyStore } from '../features/api-keys/api-key-store.ts'
import { type ListedOrganization, OrganizationStore } from '../features/organizations/organization-store.ts'
import { ProjectService } from '../features/projects/project-service.ts'
import { ProjectStore } from '../features/projects/project-store.ts'
import { StartError } from '../start-error.ts'

const usageErrorExitCode = 64
const maxNameLength = 255
const maxDays = 3650
const keysPerPage = 100

export interface ListedKey {
  readonly id: string
  readonly name: string
  readonly organization: string
  readonly project: string | null
  readonly maskedKey: string
  readonly createdAt: Date
  readonly expiresAt: Date | null
}

interface KeyRequest {
  readonly organization: string | undefined
  readonly project: string | undefined
  readonly name: string
  readonly days: number | undefined
}

/** Operations of the operator, which need no API key: organizations and their keys. */
export class Administration {
  readonly #organizations: OrganizationStore
  readonly #projects: ProjectStore
  readonly #keyStore: ApiKeyStore
  readonly #keys: ApiKeyService
  readonly #clock: Clock

  constructor(database: Database, clock: Clock) {
    this.#organizations = new OrganizationStore(database)
    this.#projects = new ProjectStore(database)
    this.#keyStore = new ApiKeyStore(database)
    this.#clock = clock
    const keys = new ApiKeyCache(this.#organizations, clock)
    const projects = new ProjectService({ store: this.#projects, keys, isEnabled: true, clock })
    this.#keys = new ApiKeyService({ store: this.#keyStore, projects, keys, clock })
  }

  /** Creates an organization with the project `Default` and a key. The key is shown only here. */
  async createOrganization(name: string, maxSessions: number | undefined) {
    const trimmed = nameText('the name', name)
    const known = await this.#organizations.list()
    if (known.some((organization) => organization.name === trimmed)) {
      throw new StartError(`the organization ${trimmed} already exists`, usageErrorExitCode)
    }
    const key = newApiKey()
    const organization = { name: trimmed, maxSessions: maxSessions ?? null }
    return { id: await this.#organizations.create(organization, key, this.#clock.now()), name: trimmed, key }
  }

  listOrganizations(): Promise<readonly ListedOrganization[]> {
    return this.#organizations.list()
  }

  /** Creates a key for the organization or for one of its projects. */
  async createKey({ organization, project, name, days }: KeyRequest) {
    if (days !== undefined && (!Number.isInteger(days) || days < 1 || days > maxDays)) {
      throw new StartError(`--days must be a whole number from 1 to ${maxDays}`, usageErrorExitCode)
    }
    const { id } = await this.#organization(organization)
    const projectId = project === undefined ? null : await this.#projectId(id, project)
    const request = { name: nameText('the name', name), daysToExpire: days, projectId }
    const { record, key } = await this.#keys.createAs(id, { id, name: null }, request).catch(asUsageError)
    return { id: record.id, name: record.name, project: record.project_name, key }
  }

  /** Lists keys that are not deleted, newest first. */
  async listKeys(organization: string | undefined): Promise<readonly ListedKey[]> {
    const { id, name } = await this.#organization(organization)
    const keys: ListedKey[] = []
    for (let offset = 0; ; offset += keysPerPage) {
      const listing = {
        text: undefined,
        name: undefined,
        status: 'active',
        sortBy: 'created_at',
        direction: 'desc',
      } as const
      const owner = { organizationId: id, keyProjectId: null }
      const page = await this.#keyStore.list(owner, listing, { limit: keysPerPage, offset })
      for (const key of page.items) {
        keys.push({
          id: key.id,
          name: key.name,
          organization: name,
          project: key.project_name,
          maskedKey: key.masked_key,
          createdAt: key.created_at,
          expiresAt: key.expires_at,
        })
      }
      if (!page.hasMore) return keys
    }
  }

  /** Deletes a key of any organization. Running servers reject it within a second. */
  async revokeKey(id: string): Promise<void> {
    for (const organization of await this.#organizations.list()) {
      const owner = { organizationId: organization.id, keyProjectId: null }
      if (await this.#keyStore.delete(owner, id, this.#clock.now())) return
    }
    throw new StartError(`there is no API key with the id ${id}; ./berth keys list prints the ids`, usageErrorExitCode)
  }

  async #projectId(organizationId: OrganizationId, idOrName: string): Promise<string> {
    const project = await this.#projects.find(organizationId, idOrName)
    if (!project) throw new StartError(`the organization has no project ${idOrName}`, usageErrorExitCode)
    return project.id
  }

  /** Finds an organization by id or name. Without one, returns the only organization. */
  async #organization(idOrName: string | undefined): Promise<ListedOrganization> {
    const all = await this.#organizations.list()
    if (all.length === 0)
      throw new StartError('there is no organization yet; create one with ./berth org create', usageErrorExitCode)
    const meant = all.filter(({ id, name }) => idOrName === undefined || id === idOrName || name === idOrName)
    const [organization, other] = meant
    if (!organization) throw new StartError(`there is no organization ${idOrName}`, usageErrorExitCode)
    if (other)
      throw new StartError('there are several organizations: select one with --org and its id', usageErrorExitCode)
    return organization
  }
}

function nameText(what: string, text: string): string {
  const name = text.trim()
  if (name === '' || name.length > maxNameLength) {
    throw new StartError(`${what} must have 1 to ${maxNameLength} characters`, usageErrorExitCode)
  }
  return name
}

/** Converts API errors into messages for the operator. */
function asUsageError(error: unknown): never {
  throw error instanceof BerthError ? new StartError(error.message, usageErrorExitCode, { cause: error }) : error
}
