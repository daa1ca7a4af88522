import type { ApiKeyId, OrganizationId, ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { type Insertable, type Selectable, sql } from 'kysely'
import type { Database } from '../../database/database.ts'
import { pageOf } from '../../database/newest-page.ts'
import { plainForm } from '../../database/plain-lower-case.ts'
import type { ApiKeyTable } from '../../database/tables.ts'

/** A stored key, with its hash but without the key itself. */
export type ApiKey = Omit<Selectable<ApiKeyTable>, 'key_hash'> & { readonly project_name: string | null }

export type KeyStatus = 'active' | 'deleted' | 'all'

/** The owner of keys: the organization or, for a caller of one project, that project. */
export interface KeyOwner {
  readonly organizationId: OrganizationId
  readonly keyProjectId: ProjectId | null
}

export interface KeyListing {
  readonly text: string | undefined
  readonly name: string | undefined
  readonly status: KeyStatus
  readonly sortBy: 'created_at' | 'name' | 'expires_at'
  readonly direction: 'asc' | 'desc'
}

export interface Rotation {
  /** Creates the new row from the locked row of the replaced key. */
  readonly successor: (old: ApiKey) => Insertable<ApiKeyTable>
  /** When the old key ends, unless it ends earlier. */
  readonly oldEndsAt: (old: ApiKey) => Date
}

export class ApiKeyStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async insert(key: Insertable<ApiKeyTable>, database = this.#database): Promise<ApiKey> {
    return insertKey(database, key)
  }

  async find(owner: KeyOwner, id: string, status: KeyStatus): Promise<ApiKey | undefined> {
    return select(this.#database, owner, status)
      .where('api_keys.id', '=', id as ApiKeyId)
      .executeTakeFirst()
  }

  async list(owner: KeyOwner, listing: KeyListing, page: PageRequest): Promise<Page<ApiKey>> {
    const { text, name, status, sortBy, direction } = listing
    let query = select(this.#database, owner, status)
    if (name !== undefined)
      query = query.where(sql<boolean>`${plainForm(sql.ref('api_keys.name'))} = ${plainForm(name)}`)
    if (text !== undefined) {
      const part = text.toLowerCase()
      query = query.where(
        sql<boolean>`(strpos(lower(api_keys.name), ${part}) > 0
          or strpos(lower(coalesce(api_keys.created_by_name, '')), ${part}) > 0
          or strpos(lower(coalesce(projects.name, '')), ${part}) > 0
          or starts_with(api_keys.id, ${part}) or starts_with(api_keys.created_by_id, ${part})
          or starts_with(coalesce(api_keys.project_id, ''), ${part}) or starts_with(api_keys.masked_key, ${text}))`,
      )
    }
    const column = sortBy === 'name' ? sql`lower(api_keys.name)` : sql.ref(`api_keys.${sortBy}`)
    return pageOf(query.orderBy(column, direction).orderBy('api_keys.id', direction), page)
  }

  async rename(owner: KeyOwner, id: string, name: string): Promise<ApiKey | undefined> {
    const renamed = await this.#updateLive(owner, id).set({ name }).returning('id').executeTakeFirst()
    return renamed && this.find(owner, renamed.id, 'active')
  }

  /** Of two concurrent deletes, one returns true. */
  async delete(owner: KeyOwner, id: string, now: Date): Promise<boolean> {
    const deleted = await this.#updateLive(owner, id).set({ deleted_at: now }).returning('id').executeTakeFirst()
    return deleted !== undefined
  }

  /**
   * Inserts the new key and sets the end of the old one in one transaction. Rotations of one key wait for each other.
   */
  async rotate(owner: KeyOwner, id: string, { successor, oldEndsAt }: Rotation): Promise<ApiKey | undefined> {
    return this.#database.transaction().execute(async (database) => {
      const old = await select(database, owner, 'active')
        .where('api_keys.id', '=', id as ApiKeyId)
        .forUpdate('api_keys')
        .executeTakeFirst()
      if (!old) return undefined
      const made = await insertKey(database, successor(old))
      const end = oldEndsAt(old)
      await database
        .updateTable('api_keys')
        .set({ expires_at: old.expires_at && old.expires_at < end ? old.expires_at : end })
        .where('id', '=', old.id)
        .execute()
      return made
    })
  }

  #updateLive({ organizationId, keyProjectId }: KeyOwner, id: string) {
    const query = this.#database
      .updateTable('api_keys')
      .where('organization_id', '=', organizationId)
      .where('id', '=', id as ApiKeyId)
      .where('deleted_at', 'is', null)
    return keyProjectId ? query.where('project_id', '=', keyProjectId) : query
  }
}

const columns = [
  'api_keys.id',
  'api_keys.organization_id',
  'api_keys.project_id',
  'api_keys.name',
  'api_keys.masked_key',
  'api_keys.created_by_id',
  'api_keys.created_by_name',
  'api_keys.created_at',
  'api_keys.expires_at',
  'api_keys.lifetime_days',
  'api_keys.deleted_at',
  'projects.name as project_name',
] as const

async function insertKey(database: Database, key: Insertable<ApiKeyTable>): Promise<ApiKey> {
  await database.insertInto('api_keys').values(key).execute()
  return database
    .selectFrom('api_keys')
    .leftJoin('projects', 'projects.id', 'api_keys.project_id')
    .select(columns)
    .where('api_keys.id', '=', key.id)
    .executeTakeFirstOrThrow()
}

function select(database: Database, { organizationId, keyProjectId }: KeyOwner, status: KeyStatus) {
  let query = database
    .selectFrom('api_keys')
    .leftJoin('projects', 'projects.id', 'api_keys.project_id')
    .select(columns)
    .where('api_keys.organization_id', '=', organizationId)
  if (keyProjectId) query = query.where('api_keys.project_id', '=', keyProjectId)
  if (status === 'active') query = query.where('api_keys.deleted_at', 'is', null)
  if (status === 'deleted') query = query.where('api_keys.deleted_at', 'is not', null)
  return query
}
