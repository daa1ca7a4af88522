import type { ApiKeyId, AppVersionId, DeploymentId, ProjectId } from '@berth/contract/common/ids.ts'
import { newId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { type Insertable, type Selectable, sql } from 'kysely'
import type { Database } from '../../../database/database.ts'
import { newestPage } from '../../../database/newest-page.ts'
import type { AppVersionTable, DeploymentTable } from '../../../database/tables.ts'
import { type BuildWait, buildDeployment } from '../../../jobs/declared-jobs.ts'
import type { JobQueue } from '../../../jobs/job-runner.ts'

export type StoredDeployment = Selectable<DeploymentTable>
export type StoredAppVersion = Selectable<AppVersionTable>
/** A version with the fields of its deployment that its record shows. */
export type ListedAppVersion = StoredAppVersion & Pick<StoredDeployment, 'env_names'>

export interface DeploymentFilter {
  readonly projectId: ProjectId
  readonly appName: string | undefined
  readonly version: string | undefined
  readonly text: string | undefined
}

/** An app with its actions, as its code registers them. */
export interface RegisteredApp {
  readonly name: string
  readonly actions: readonly string[]
}

interface DeploymentKey {
  readonly keyId: ApiKeyId
  readonly sealedKey: Buffer
}

const building = ['queued', 'in_progress'] as const
const live = [...building, 'running'] as const

export class DeploymentStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /**
   * Inserts the deployment with its build job. Inserts of one project wait for each other, so that no two take the last
   * free slot.
   */
  async insert(row: Insertable<DeploymentTable>, limit: number, jobs: JobQueue): Promise<StoredDeployment> {
    return this.#database.transaction().execute(async (database) => {
      await sql`select pg_advisory_xact_lock(hashtextextended(${`deployments of ${row.project_id}`}, 0))`.execute(
        database,
      )
      const { count } = await database
        .selectFrom('deployments')
        .select(sql<number>`count(*)::int`.as('count'))
        .where('project_id', '=', row.project_id)
        .where('status', 'in', building)
        .executeTakeFirstOrThrow()
      if (count >= limit) throw new BerthError('deployment_limit_reached', { limit })
      const inserted = await database.insertInto('deployments').values(row).returningAll().executeTakeFirstOrThrow()
      await jobs.enqueue(buildDeployment, { deploymentId: inserted.id }, { transaction: database })
      return inserted
    })
  }

  /** A deployment of the project that is not deleted. */
  async find(projectId: ProjectId, id: string): Promise<StoredDeployment | undefined> {
    return this.#database
      .selectFrom('deployments')
      .selectAll()
      .where('project_id', '=', projectId)
      .where('id', '=', id as DeploymentId)
      .where('deleted_at', 'is', null)
      .executeTakeFirst()
  }

  async list(
    { projectId, appName, version, text }: DeploymentFilter,
    page: PageRequest,
  ): Promise<Page<StoredDeployment>> {
    let query = this.#database
      .selectFrom('deployments')
      .selectAll()
      .where('project_id', '=', projectId)
      .where('deleted_at', 'is', null)
    if (appName !== undefined) {
      query = query.where(sql<boolean>`exists (select from app_versions v where v.deployment_id = deployments.id
        and v.app_name = ${appName} and (${version ?? null}::text is null or v.version = ${version ?? null}))`)
    }
    if (text !== undefined) {
      query = query.where(sql<boolean>`(deployments.id = ${text} or exists (select from app_versions v
        where v.deployment_id = deployments.id and strpos(lower(v.app_name), ${text.toLowerCase()}) > 0))`)
    }
    return newestPage(query, page)
  }

  /** Starts or restarts the build. Undefined if there is nothing left to build. */
  async claim(id: DeploymentId, now: Date): Promise<StoredDeployment | undefined> {
    return this.#database
      .updateTable('deployments')
      .set({ status: 'in_progress', attempts: sql`attempts + 1`, updated_at: now })
      .where('id', '=', id)
      .where('status', 'in', building)
      .returningAll()
      .executeTakeFirst()
  }

  /** Lets the first available server build it. This attempt is not counted, because nothing was started. */
  async handOn(id: DeploymentId, wait: BuildWait, jobs: JobQueue): Promise<void> {
    await this.#database.transaction().execute(async (database) => {
      const waiting = await database
        .updateTable('deployments')
        .set({ attempts: sql`attempts - 1` })
        .where('id', '=', id)
        .where('status', '=', 'in_progress')
        .returning('id')
        .executeTakeFirst()
      if (!waiting) return
      // This server requests its next job immediately, so the delay lets others take it first.
      const options = { transaction: database, startAfterSeconds: 1 }
      await jobs.enqueue(buildDeployment, { deploymentId: id, wait }, options)
    })
  }

  /** Whether it is still being built. */
  async isBuilding(id: DeploymentId): Promise<boolean> {
    const found = await this.#database
      .selectFrom('deployments')
      .select('id')
      .where('id', '=', id)
      .where('status', 'in', building)
      .executeTakeFirst()
    return found !== undefined
  }

  /**
   * The encrypted key of the deployment, created at the first use. Of two concurrent first uses, one creates it. A key
   * exists only together with the row of its deployment.
   */
  async takeKey(id: DeploymentId, make: (database: Database) => Promise<DeploymentKey>): Promise<Buffer> {
    return this.#database.transaction().execute(async (database) => {
      const { sealed_key: known } = await database
        .selectFrom('deployments')
        .select('sealed_key')
        .where('id', '=', id)
        .forNoKeyUpdate()
        .executeTakeFirstOrThrow()
      if (known) return known
      const { keyId, sealedKey } = await make(database)
      await database
        .updateTable('deployments')
        .set({ key_id: keyId, sealed_key: sealedKey })
        .where('id', '=', id)
        .execute()
      return sealedKey
    })
  }

  /** Stores the fetched source. The token is not needed any more. */
  async setSource(id: DeploymentId, { checksum, blob }: { checksum: string; blob: string }): Promise<void> {
    await this.#database
      .updateTable('deployments')
      .set({ source_checksum: checksum, source_blob: blob, sealed_token: null })
      .where('id', '=', id)
      .where('source_blob', 'is', null)
      .execute()
  }

  /** Dependencies that deployments of the same organization have installed for the same lock file. */
  async findDependencies(projectId: ProjectId, key: string): Promise<string | undefined> {
    const found = await this.#database
      .selectFrom('deployments')
      .innerJoin('projects as of', 'of.id', 'deployments.project_id')
      .innerJoin('projects as own', 'own.organization_id', 'of.organization_id')
      .select('deployments.dependencies_blob')
      .where('own.id', '=', projectId)
      .where('deployments.dependencies_key', '=', key)
      .where('deployments.dependencies_blob', 'is not', null)
      .where('deployments.status', 'in', live)
      .executeTakeFirst()
    return found?.dependencies_blob ?? undefined
  }

  async setDependencies(id: DeploymentId, blob: string, key: string | undefined): Promise<void> {
    await this.#database
      .updateTable('deployments')
      .set({ dependencies_blob: blob, dependencies_key: key ?? null })
      .where('id', '=', id)
      .execute()
  }

  /**
   * Makes the deployment serve its apps. It takes over versions that other deployments serve, if that is permitted, and
   * a deployment that serves none any more is stopped. Reports a version that may not be replaced, or that the
   * deployment is gone.
   */
  async publish(
    { id, project_id: projectId, version, is_forced: isForced }: StoredDeployment,
    apps: readonly RegisteredApp[],
    now: Date,
  ): Promise<{ readonly published: boolean; readonly taken?: string; readonly stopped: readonly DeploymentId[] }> {
    return this.#database
      .transaction()
      .execute(async (database) => {
        // Publications of one project wait for each other.
        await sql`select pg_advisory_xact_lock(hashtextextended(${`apps of ${projectId}`}, 0))`.execute(database)
        const started = await database
          .updateTable('deployments')
          .set({ status: 'running', updated_at: now })
          .where('id', '=', id)
          .where('status', '=', 'in_progress')
          .returning('id')
          .executeTakeFirst()
        if (!started) return { published: false, stopped: [] }
        const names = apps.map(({ name }) => name)
        const replaced = await database
          .updateTable('app_versions')
          .set({ live_project_id: null })
          .where('live_project_id', '=', projectId)
          .where('version', '=', version)
          .where('app_name', 'in', names)
          .returning(['app_name', 'deployment_id'])
          .execute()
        const [first] = replaced
        if (first && !isForced && version !== 'latest') throw new VersionTaken(first.app_name)
        await database
          .insertInto('app_versions')
          .values(
            apps.map(({ name, actions }) => ({
              id: newId('app-version', now),
              deployment_id: id,
              app_name: name,
              version,
              actions: JSON.stringify(actions),
              created_at: now,
              live_project_id: projectId,
            })),
          )
          .execute()
        return {
          published: true,
          stopped: await stopUnused(
            database,
            replaced.map((row) => row.deployment_id),
            now,
          ),
        }
      })
      .catch((error: unknown) => {
        if (error instanceof VersionTaken) return { published: false, taken: error.message, stopped: [] }
        throw error
      })
  }

  async fail(id: DeploymentId, reason: string, now: Date): Promise<void> {
    await this.#database
      .updateTable('deployments')
      .set({ status: 'failed', status_reason: reason, sealed_token: null, updated_at: now })
      .where('id', '=', id)
      .where('status', 'in', building)
      .execute()
  }

  /** Of two concurrent deletes, one returns true. Running invocations continue. */
  async delete(projectId: ProjectId, id: string, now: Date): Promise<boolean> {
    return this.#database.transaction().execute(async (database) => {
      const deleted = await database
        .updateTable('deployments')
        .set({
          deleted_at: now,
          sealed_token: null,
          updated_at: now,
          status: sql`case when status = 'failed' then 'failed' else 'stopped' end`,
        })
        .where('project_id', '=', projectId)
        .where('id', '=', id as DeploymentId)
        .where('deleted_at', 'is', null)
        .returning('id')
        .executeTakeFirst()
      if (!deleted) return false
      await database
        .updateTable('app_versions')
        .set({ live_project_id: null })
        .where('deployment_id', '=', deleted.id)
        .execute()
      return true
    })
  }

  /** The versions that the deployment serves or served last. */
  async listVersions(id: DeploymentId): Promise<readonly StoredAppVersion[]> {
    return this.#database
      .selectFrom('app_versions')
      .selectAll()
      .where('deployment_id', '=', id)
      .orderBy('app_name')
      .execute()
  }

  /** Newest first. */
  async listApps(
    { projectId, appName, version, text }: DeploymentFilter,
    page: PageRequest,
  ): Promise<Page<ListedAppVersion>> {
    let query = this.#database.selectFrom('app_versions').selectAll().where('live_project_id', '=', projectId)
    if (appName !== undefined) query = query.where('app_name', '=', appName)
    if (version !== undefined) query = query.where('version', '=', version)
    if (text !== undefined) query = query.where(sql<boolean>`strpos(lower(app_name), ${text.toLowerCase()}) > 0`)
    const { items, hasMore } = await newestPage(query, page)
    const ids = items.map(({ deployment_id }) => deployment_id)
    if (ids.length === 0) return { items: [], hasMore }
    const rows = await this.#database
      .selectFrom('deployments')
      .select(['id', 'env_names'])
      .where('id', 'in', ids)
      .execute()
    const names = new Map(rows.map((row) => [row.id, row.env_names]))
    return { items: items.map((item) => ({ ...item, env_names: names.get(item.deployment_id) ?? [] })), hasMore }
  }

  /** The version that currently serves the app. */
  async findApp(projectId: ProjectId, appName: string, version: string): Promise<StoredAppVersion | undefined> {
    return this.#database
      .selectFrom('app_versions')
      .selectAll()
      .where('live_project_id', '=', projectId)
      .where('app_name', '=', appName)
      .where('version', '=', version)
      .executeTakeFirst()
  }

  /** The deployment in any state. */
  async get(id: DeploymentId): Promise<StoredDeployment> {
    return this.#database.selectFrom('deployments').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  }

  /** Deletes the keys of deployments that have ended and have no running invocations. */
  async releaseKeys(now: Date): Promise<number> {
    const { rows } = await sql<{ id: AppVersionId }>`
      update api_keys set deleted_at = ${now} where deleted_at is null and id in (
        select key_id from deployments d where d.key_id is not null and d.status in ('stopped', 'failed')
          and not exists (select from invocations i where i.deployment_id = d.id and i.status in ('queued', 'running')))
      returning id`.execute(this.#database)
    return rows.length
  }

  async listUsedBlobs(names: readonly string[]): Promise<readonly string[]> {
    const rows = await this.#database
      .selectFrom('deployments')
      .select(['source_blob', 'dependencies_blob'])
      .where(
        sql<boolean>`(status in (${sql.join(live)}) or exists (select from invocations i
          where i.deployment_id = deployments.id and i.status in ('queued', 'running')))`,
      )
      .where((where) => where.or([where('source_blob', 'in', names), where('dependencies_blob', 'in', names)]))
      .execute()
    return rows.flatMap(({ source_blob, dependencies_blob }) =>
      [source_blob, dependencies_blob].filter((name) => name !== null),
    )
  }
}

class VersionTaken extends Error {}

async function stopUnused(
  database: Database,
  ids: readonly DeploymentId[],
  now: Date,
): Promise<readonly DeploymentId[]> {
  if (ids.length === 0) return []
  const stopped = await database
    .updateTable('deployments')
    .set({ status: 'stopped', status_reason: 'Another deployment serves its apps now.', updated_at: now })
    .where('id', 'in', ids)
    .where('status', '=', 'running')
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('app_versions')
            .select('app_versions.id')
            .whereRef('app_versions.deployment_id', '=', 'deployments.id')
            .where('app_versions.live_project_id', 'is not', null),
        ),
      ),
    )
    .returning('id')
    .execute()
  return stopped.map(({ id }) => id)
}
