import { type ApiKeyId, newId, type OrganizationId, type ProjectId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { sql } from 'kysely'
import { hashApiKey, maskApiKey } from '../../access/secrets.ts'
import type { Database } from '../../database/database.ts'

export const defaultProjectName = 'Default'
const defaultOrganizationName = 'Default'
const maxCachedOwners = 10_000
/** An arbitrary number that no other advisory lock uses. Servers that start on a new database wait for each other. */
const firstStartLock = 7_301

/**
 * An API key with its organization, its project when it is restricted to one, and the organization's default project.
 */
export interface KeyScope {
  readonly keyId: ApiKeyId
  readonly keyName: string
  readonly expiresAt: Date | null
  readonly organizationId: OrganizationId
  readonly projectId: ProjectId | null
  /** False if the key is restricted to an archived project. */
  readonly isProjectActive: boolean
  readonly defaultProjectId: ProjectId | null
}

/** The organization and project of a key or a token. */
export type ScopeOwner = Pick<KeyScope, 'isProjectActive' | 'defaultProjectId'>

export class OrganizationStore {
  readonly #database: Database
  readonly #owners = new Map<ProjectId, OrganizationId>()

  constructor(database: Database) {
    this.#database = database
  }

  /**
   * Finds a key by its own hash, or by that of a session of the dashboard. Includes the default project, because every
   * request looks up its key and nearly every one works in that project.
   */
  async findKey(hash: Buffer): Promise<KeyScope | undefined> {
    const signedIn = this.#database.selectFrom('dashboard_sessions').where('token_hash', '=', hash)
    return this.#database
      .selectFrom('api_keys')
      .leftJoin('projects as own', (join) =>
        join.onRef('own.id', '=', 'api_keys.project_id').on('own.archived_at', 'is', null),
      )
      .leftJoin('projects', (join) =>
        join
          .onRef('projects.organization_id', '=', 'api_keys.organization_id')
          .on('projects.is_default', '=', true)
          .on('projects.archived_at', 'is', null),
      )
      .select([
        'api_keys.id as keyId',
        'api_keys.name as keyName',
        // The earlier of two times. Null means no end, so the other one counts.
        (select) =>
          select.fn<Date | null>('least', ['api_keys.expires_at', signedIn.select('expires_at')]).as('expiresAt'),
        'api_keys.organization_id as organizationId',
        'api_keys.project_id as projectId',
        'projects.id as defaultProjectId',
        sql<boolean>`own.id is not null`.as('isProjectActive'),
      ])
      .where((where) =>
        where.or([where('api_keys.key_hash', '=', hash), where('api_keys.id', '=', signedIn.select('key_id'))]),
      )
      .where('api_keys.deleted_at', 'is', null)
      .executeTakeFirst()
  }

  /** For a token with an organization and possibly a project. Undefined if the organization does not exist. */
  async findOwner(organizationId: OrganizationId, projectId: ProjectId | null): Promise<ScopeOwner | undefined> {
    return this.#database
      .selectFrom('organizations')
      .leftJoin('projects as own', (join) =>
        join
          .onRef('own.organization_id', '=', 'organizations.id')
          .on('own.id', '=', projectId)
          .on('own.archived_at', 'is', null),
      )
      .leftJoin('projects', (join) =>
        join
          .onRef('projects.organization_id', '=', 'organizations.id')
          .on('projects.is_default', '=', true)
          .on('projects.archived_at', 'is', null),
      )
      .select(['projects.id as defaultProjectId', sql<boolean>`own.id is not null`.as('isProjectActive')])
      .where('organizations.id', '=', organizationId)
      .executeTakeFirst()
  }

  /** Finds an active project by id or by exact name. Ids take precedence. */
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

  /** The organization of a project. Cached, because it never changes. */
  async organizationOf(projectId: ProjectId): Promise<OrganizationId> {
    const known = this.#owners.get(projectId)
    if (known) return known
    const project = await this.#database
      .selectFrom('projects')
      .select('organization_id')
      .where('id', '=', projectId)
      .executeTakeFirst()
    if (!project) throw new BerthError('project_not_found')
    if (this.#owners.size >= maxCachedOwners) this.#owners.clear()
    this.#owners.set(projectId, project.organization_id)
    return project.organization_id
  }

  /** Creates the organization, its project and its first key if there is none. Returns whether it did. */
  async createFirst(key: string, now: Date): Promise<boolean> {
    return this.#database.transaction().execute(async (database) => {
      await sql`select pg_advisory_xact_lock(${firstStartLock})`.execute(database)
      const known = await database.selectFrom('organizations').select('id').limit(1).executeTakeFirst()
      if (known) return false
      await insertOrganization(database, { name: defaultOrganizationName, maxSessions: null }, key, now)
      return true
    })
  }

  /** Creates an organization with its project and a first key. */
  async create(organization: NewOrganization, key: string, now: Date): Promise<OrganizationId> {
    return this.#database.transaction().execute((database) => insertOrganization(database, organization, key, now))
  }

  /** Oldest first. */
  async list(): Promise<readonly ListedOrganization[]> {
    return this.#database
      .selectFrom('organizations')
      .select(['id', 'name', 'created_at as createdAt', 'max_concurrent_sessions as maxSessions'])
      .orderBy('created_at')
      .orderBy('id')
      .execute()
  }

  /** Makes the key valid for the first organization, unless it exists already. */
  async admitKey(key: string, now: Date): Promise<void> {
    const { id } = await this.#database
      .selectFrom('organizations')
      .select('id')
      .orderBy('created_at')
      .limit(1)
      .executeTakeFirstOrThrow()
    await insertKey(this.#database, id, key, now)
  }
}

export type ProjectSelector = { readonly id: string } | { readonly idOrName: string }

export interface NewOrganization {
  readonly name: string
  /** Null for the server's default. */
  readonly maxSessions: number | null
}

export interface ListedOrganization extends NewOrganization {
  readonly id: OrganizationId
  readonly createdAt: Date
}

async function insertOrganization(
  database: Database,
  { name, maxSessions }: NewOrganization,
  key: string,
  now: Date,
): Promise<OrganizationId> {
  const id = newId('organization', now)
  await database
    .insertInto('organizations')
    .values({ id, name, created_at: now, max_concurrent_sessions: maxSessions })
    .execute()
  await database
    .insertInto('projects')
    .values({
      id: newId('project', now),
      organization_id: id,
      name: defaultProjectName,
      is_default: true,
      created_at: now,
      updated_at: now,
    })
    .execute()
  await insertKey(database, id, key, now)
  return id
}

async function insertKey(database: Database, organizationId: OrganizationId, key: string, now: Date): Promise<void> {
  await database
    .insertInto('api_keys')
    .values({
      id: newId('api-key', now),
      organization_id: organizationId,
      project_id: null,
      name: 'first key',
      key_hash: hashApiKey(key),
      masked_key: maskApiKey(key),
      created_by_id: organizationId,
      created_at: now,
    })
    .onConflict((conflict) => conflict.column('key_hash').doNothing())
    .execute()
}
