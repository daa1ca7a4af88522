import { newId, type OrganizationId, type ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { ProjectLimitsUpdate } from '@berth/contract/projects/project.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { ApiKeyCache } from '../../access/api-key-cache.ts'
import type { OrganizationCaller } from '../../access/caller.ts'
import { requireOrganizationKey } from '../../access/require-organization-key.ts'
import type { Project, ProjectStore } from './project-store.ts'

interface ProjectServiceOptions {
  readonly store: ProjectStore
  readonly keys: ApiKeyCache
  /** Whether the operator has enabled projects. */
  readonly isEnabled: boolean
  readonly clock: Clock
}

interface ProjectChange {
  readonly name?: string | undefined
  readonly status?: 'active' | 'archived' | undefined
}

interface Named {
  readonly text: string | undefined
  readonly name: string | undefined
}

/** The rules of projects. A key of one project sees only that project, and may only rename it. */
export class ProjectService {
  readonly #store: ProjectStore
  readonly #keys: ApiKeyCache
  readonly #isEnabled: boolean
  readonly #clock: Clock

  constructor({ store, keys, isEnabled, clock }: ProjectServiceOptions) {
    this.#store = store
    this.#keys = keys
    this.#isEnabled = isEnabled
    this.#clock = clock
  }

  requireEnabled(): void {
    if (!this.#isEnabled) throw new BerthError('projects_disabled')
  }

  async create(caller: OrganizationCaller, name: string): Promise<Project> {
    requireOrganizationKey(caller)
    const now = this.#clock.now()
    return this.#store.insert({
      id: newId('project', now),
      organization_id: caller.organizationId,
      name,
      is_default: false,
      created_at: now,
      updated_at: now,
    })
  }

  async list(caller: OrganizationCaller, { text, name }: Named, page: PageRequest): Promise<Page<Project>> {
    const { organizationId, keyProjectId } = caller
    return this.#store.list({ organizationId, only: keyProjectId, text, name }, page)
  }

  async get({ organizationId, keyProjectId }: OrganizationCaller, idOrName: string): Promise<Project> {
    const project = await this.#store.find(organizationId, idOrName)
    if (!project || (keyProjectId && keyProjectId !== project.id)) throw new BerthError('project_not_found')
    return project
  }

  /** Finds an active project by id, to create something in it. */
  async getActive(organizationId: OrganizationId, id: string): Promise<Project> {
    const project = await this.#store.find(organizationId, id)
    if (!project || project.id !== id || project.archived_at) throw new BerthError('project_not_found')
    return project
  }

  async update(caller: OrganizationCaller, idOrName: string, { name, status }: ProjectChange): Promise<Project> {
    const project = await this.get(caller, idOrName)
    if (status !== undefined) requireOrganizationKey(caller)
    const now = this.#clock.now()
    const archived = status === 'archived' ? { archived_at: project.archived_at ?? now } : { archived_at: null }
    const columns = { ...(name !== undefined && { name }), ...(status && archived), updated_at: now }
    const updated =
      status === 'archived'
        ? await this.#store.archive(caller.organizationId, project.id, columns)
        : await this.#store.update(project.id, columns)
    return this.#changed(updated)
  }

  /** The project must be empty. */
  async delete(caller: OrganizationCaller, idOrName: string): Promise<void> {
    requireOrganizationKey(caller)
    const { id } = await this.get(caller, idOrName)
    const isDeleted = await this.#store.delete(caller.organizationId, id)
    this.#keys.clear()
    if (!isDeleted) throw new BerthError('project_not_found')
  }

  async setLimits(caller: OrganizationCaller, idOrName: string, limits: ProjectLimitsUpdate): Promise<Project> {
    const { id }: { id: ProjectId } = await this.get(caller, idOrName)
    requireOrganizationKey(caller)
    const { max_concurrent_sessions: sessions, max_concurrent_invocations: invocations } = limits
    const columns = {
      ...(typeof sessions === 'number' && { max_concurrent_sessions: sessions || null }),
      ...(typeof invocations === 'number' && { max_concurrent_invocations: invocations || null }),
      updated_at: this.#clock.now(),
    }
    return this.#changed(await this.#store.update(id, columns))
  }

  #changed(project: Project | undefined): Project {
    this.#keys.clear()
    if (!project) throw new BerthError('project_not_found')
    return project
  }
}
