import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { type DeploymentId, newId, type ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { Archive } from '@berth/runtime/archive/archive.ts'
import { BadArchive } from '@berth/runtime/archive/archive-entry.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { JobQueue } from '../../jobs/job-runner.ts'
import type { AppBlobs } from './app-blobs.ts'
import type { AppEnvironment } from './app-environment.ts'
import type { AppLogs } from './app-logs.ts'
import type { DeploymentFilter, DeploymentStore, ListedAppVersion, StoredDeployment } from './deployment-store.ts'
import type { DeploymentUpload } from './receive-deployment.ts'

const archiveLimits = { maxEntries: 50_000, maxUnpackedBytes: 1024 ** 3 }
const maxBuildsOfProject = 20

interface DeploymentServiceOptions {
  readonly store: DeploymentStore
  readonly blobs: AppBlobs
  readonly environment: AppEnvironment
  readonly logs: AppLogs
  readonly jobs: JobQueue
  /** Ends the machine of the deployment when it has nothing to do. */
  readonly retire: (id: DeploymentId) => void
  readonly clock: Clock
}

/** The deployments of a project, and the apps that they serve. */
export class DeploymentService {
  readonly #options: DeploymentServiceOptions

  constructor(options: DeploymentServiceOptions) {
    this.#options = options
  }

  async create(projectId: ProjectId, upload: DeploymentUpload): Promise<StoredDeployment> {
    const { store, blobs, environment, jobs, clock } = this.#options
    const { path, entrypoint, version, isForced, variables } = upload
    await checkSource(path, entrypoint)
    const now = clock.now()
    const id = newId('deployment', now)
    const hash = createHash('sha256')
    await pipeline(createReadStream(path), hash)
    const blob = await blobs.write('source', projectId, createReadStream(path))
    try {
      const row = {
        id,
        project_id: projectId,
        status: 'queued' as const,
        status_reason: null,
        version,
        is_forced: isForced,
        entrypoint,
        env_names: JSON.stringify(Object.keys(variables)),
        sealed_env: await environment.seal(projectId, id, variables),
        source_checksum: hash.digest('hex'),
        source_blob: blob,
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
      await blobs.remove(blob)
      throw error
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

/** Reads the whole archive, so that one that passes can be unpacked anywhere. */
async function checkSource(path: string, entrypoint: string): Promise<void> {
  try {
    await using archive = await Archive.open(path, archiveLimits)
    if (!archive.entries.some((entry) => entry.path === entrypoint && entry.kind === 'file')) {
      throw new BerthError('bad_request', { reason: `entrypoint_rel_path: the archive holds no file ${entrypoint}.` })
    }
    await archive.verify()
  } catch (error) {
    if (!(error instanceof BadArchive)) throw error
    throw new BerthError('archive_refused', { field: 'file', reason: error.message }, { cause: error })
  }
}
