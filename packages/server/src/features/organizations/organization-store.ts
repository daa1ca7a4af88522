import { type ApiKeyId, newId, type OrganizationId, type ProjectId } from '@berth/contract/common/ids.ts'
import { sql } from 'kysely'
import type { Database } from '../../database/database.ts'

export const defaultProjectName = 'Default'
const defaultOrganizationName = 'Default'
/** Any number that no other part locks: servers that start on one new database wait for each other here. */
const firstStartLock = 7_301

/** A key that may call: its organization, its project when it is bound to one, and the organization's default project. */
export interface KeyScope {
  readonly keyId: ApiKeyId
  readonly organizationId: OrganizationId
  readonly projectId: ProjectId | null
  readonly defaultProjectId: ProjectId | null
}

export class OrganizationStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** With the default project at once: every request asks for the key, and nearly every one works in that project. */
  async findKey(hash: Buffer): Promise<KeyScope | undefined> {
    return this.#database
      .selectFrom('api_keys')
      .leftJoin('projects', (join) =>
        join
          .onRef('projects.organization_id', '=', 'api_keys.organization_id')
          .on('projects.is_default', '=', true)
          .on('projects.archived_at', 'is', null),
      )
      .select([
        'api_keys.id as keyId',
        'api_keys.organization_id as organizationId',
        'api_keys.project_id as projectId',
        'projects.id as defaultProjectId',
      ])
      .where('api_keys.key_hash', '=', hash)
      .where('api_keys.deleted_at', 'is', null)
      .executeTakeFirst()
  }

  /** A project that can be worked in, by id or by its exact name; ids come first. */
  async findProject(organizationId: OrganizationId, selector: ProjectSelector): Promise<ProjectId | undefined> {
    const project = await this.#database
      .selectFrom('projects')
      .select('id')
      .where('organization_id', '=', organizationId)
      .where('archived_at', 'is', null)
      .where((where) => {
        if ('id' in selector) return where('id', '=', selector.id as ProjectId)
        return where.or([where('id', '=', selector.idOrName as ProjectId), where('name', '=', selector.idOrName)])
      })
      .orderBy(sql`id = ${'idOrName' in selector ? selector.idOrName : ''}`, 'desc')
      .executeTakeFirst()
    return project?.id
  }

  /** Makes the organization, its project and its first key where there is none yet; says whether it did. */
  async makeFirst(keyHash: Buffer, now: Date): Promise<boolean> {
    return this.#database.transaction().execute(async (database) => {
      await sql`select pg_advisory_xact_lock(${firstStartLock})`.execute(database)
      const known = await database.selectFrom('organizations').select('id').limit(1).executeTakeFirst()
      if (known) return false

      const organizationId = newId('organization', now)
      await database
        .insertInto('organizations')
        .values({ id: organizationId, name: defaultOrganizationName, created_at: now })
        .execute()
      await database
        .insertInto('projects')
        .values({
          id: newId('project', now),
          organization_id: organizationId,
          name: defaultProjectName,
          is_default: true,
          created_at: now,
        })
        .execute()
      await insertKey(database, organizationId, keyHash, now)
      return true
    })
  }

  /** Lets the key act for the first organization; one that is known already stays as it is. */
  async admitKey(keyHash: Buffer, now: Date): Promise<void> {
    const { id } = await this.#database
      .selectFrom('organizations')
      .select('id')
      .orderBy('created_at')
      .limit(1)
      .executeTakeFirstOrThrow()
    await insertKey(this.#database, id, keyHash, now)
  }
}

export type ProjectSelector = { readonly id: string } | { readonly idOrName: string }

async function insertKey(
  database: Database,
  organizationId: OrganizationId,
  keyHash: Buffer,
  now: Date,
): Promise<void> {
  await database
    .insertInto('api_keys')
    .values({
      id: newId('api-key', now),
      organization_id: organizationId,
      project_id: null,
      name: 'first key',
      key_hash: keyHash,
      created_at: now,
    })
    .onConflict((conflict) => conflict.column('key_hash').doNothing())
    .execute()
}
