import { type DeploymentId, newId, type ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { JobQueue } from '../../../jobs/job-runner.ts'
import type { ProjectSecrets } from '../../../secrets/project-secrets.ts'
import { type AppBlobs, keepSource } from '../app-blobs.ts'
import type { AppEnvironment } from '../app-environment.ts'
import { checkRepositoryUrl, tokenContext } from '../builds/repository.ts'
import type { AppLogs } from '../logs/app-logs.ts'
import { checkSource } from './check-source.ts'
import type { DeploymentFilter, DeploymentStore, ListedAppVersion, StoredDeployment } from './deployment-store.ts'
import type { ArchiveSource, DeploymentRequest, RepositoryRequest } from './receive-deployment.ts'

const maxBuildsOfProject = 20

type SourceColumns = Pick<
  StoredDeployment,
  'source_checksum' | 'source_blob' | 'source_url' | 'source_ref' | 'source_path' | 'sealed_token'
>

interface DeploymentServiceOptions {
  readonly store: DeploymentStore
  readonly blobs: AppBlobs
  readonly environment: AppEnvironment
  readonly secrets: ProjectSecrets
  /** The host of repositories. */
  readonly gitHubUrl: string
  readonly logs: AppLogs
  readonly jobs: JobQueue
  /** Ends the machine of the deployment when it is idle. */
  readonly retire: (id: DeploymentId) => void
  readonly clock: Clock
}

/** The deployments of a project and the apps that they serve. */
export class DeploymentService {
  readonly #options: DeploymentServiceOptions

  constructor(options: DeploymentServiceOptions) {
    this.#options = options
  }

  async create(projectId: ProjectId, request: DeploymentRequest): Promise<StoredDeployment> {
    const { store, blobs, environment, jobs, clock } = this.#options
    const { source, version, isForced, variables } = request
    const now = clock.now()
    const id = newId('deployment', now)
    const sourceColumns =
      source.kind === 'archive'
        ? await this.#keepArchive(projectId, source)
        : await this.#describe(projectId, id, source)
    try {
      const row = {
        ...sourceColumns,
        id,
        project_id: projectId,
        status: 'queued' as const,
        status_reason: null,
        version,
        is_forced: isForced,
        entrypoint: source.entrypoint,
        env_names: JSON.stringify(Object.keys(variables)),
        sealed_env: await environment.seal(projectId, id, variables),
        dependencies_blob: null,
        dependencies_key: null,
        key_id: null,
        sealed_key: null,
        created_at: now,
        updated_at: now,
        deleted_at: null,
      }
      return await store.insert(row, maxBuildsOfProject, jobs)
    } catch (error) {
      if (sourceColumns.source_blob !== null) await blobs.remove(sourceColumns.source_blob)
      throw error
    }
  }

  async #keepArchive(projectId: ProjectId, { path, entrypoint }: ArchiveSource): Promise<SourceColumns> {
    await checkSource(path, entrypoint, { entrypoint: 'entrypoint_rel_path', archive: 'file' })
    const { checksum, blob } = await keepSource(this.#options.blobs, projectId, path)
    const repository = { source_url: null, source_ref: null, source_path: null, sealed_token: null }
    return { ...repository, source_checksum: checksum, source_blob: blob }
  }

  /** The build fetches the repository. */
  async #describe(
    projectId: ProjectId,
    id: DeploymentId,
    { url, ref, path, token }: RepositoryRequest,
  ): Promise<SourceColumns> {
    const { secrets, gitHubUrl } = this.#options
    return {
      source_checksum: null,
      source_blob: null,
      source_url: checkRepositoryUrl(url, gitHubUrl),
      source_ref: ref,
      source_path: path ?? null,
      sealed_token: token === undefined ? null : await secrets.seal(projectId, token, tokenContext(id)),
    }
  }

  async get(projectId: ProjectId, id: string): Promise<StoredDeployment> {
    const deployment = await this.#options.store.find(projectId, id)
    if (!deployment) throw new BerthError('deployment_not_found', { deployment: id })
    return deployment
  }

  list(filter: DeploymentFilter, page: PageRequest): Promise<Page<StoredDeployment>> {
    return this.#options.store.list(filter, page)
  }

  listApps(filter: DeploymentFilter, page: PageRequest): Promise<Page<ListedAppVersion>> {
    return this.#options.store.listApps(filter, page)
  }

  async delete(projectId: ProjectId, id: string): Promise<void> {
    const { store, logs, retire, clock } = this.#options
    if (!(await store.delete(projectId, id, clock.now()))) {
      throw new BerthError('deployment_not_found', { deployment: id })
    }
    logs.notify(id as DeploymentId)
    retire(id as DeploymentId)
    await store.releaseKeys(clock.now())
  }

  async listUsedBlobs(names: readonly string[]): Promise<readonly string[]> {
    return this.#options.store.listUsedBlobs(names)
  }
}
