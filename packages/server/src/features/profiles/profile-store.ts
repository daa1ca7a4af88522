import type { ProfileId, ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { type Insertable, type Selectable, sql } from 'kysely'
import type { Database } from '../../database/database.ts'
import { hasId, hasIdOrName } from '../../database/id-or-name.ts'
import { newestPage } from '../../database/newest-page.ts'
import { plainLowerCase } from '../../database/plain-lower-case.ts'
import type { ProfileTable } from '../../database/tables.ts'
import { refuseTakenName } from '../../database/taken-name.ts'

/** A profile: saved browser state that sessions start from, with a name. */
export type Profile = Selectable<ProfileTable>

export interface ProfileFilter {
  readonly projectId: ProjectId
  readonly text: string | undefined
  readonly name: string | undefined
}

/** The state of a session that ended. */
export interface SavedState {
  readonly blob: string
  /** When that session ended. */
  readonly endedAt: Date
}

export class ProfileStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async insert(profile: Insertable<ProfileTable>): Promise<Profile> {
    return this.#database
      .insertInto('profiles')
      .values(profile)
      .returningAll()
      .executeTakeFirstOrThrow()
      .catch(refuseTakenName('profile_names', 'profile_name_taken', profile.name))
  }

  /** Finds by id or, if there is none, by name. */
  async find(projectId: ProjectId, idOrName: string): Promise<Profile | undefined> {
    return this.#database
      .selectFrom('profiles')
      .selectAll()
      .where('project_id', '=', projectId)
      .where(hasIdOrName(idOrName))
      .orderBy(hasId(idOrName), 'desc')
      .executeTakeFirst()
  }

  async findById(id: ProfileId): Promise<Profile | undefined> {
    return this.#database.selectFrom('profiles').selectAll().where('id', '=', id).executeTakeFirst()
  }

  async listByIds(ids: readonly ProfileId[]): Promise<readonly Profile[]> {
    return this.#database.selectFrom('profiles').selectAll().where('id', 'in', ids).execute()
  }

  /** Newest first. */
  async list({ projectId, text, name }: ProfileFilter, page: PageRequest): Promise<Page<Profile>> {
    let query = this.#database.selectFrom('profiles').selectAll().where('project_id', '=', projectId)
    if (text) {
      const wanted = text.toLowerCase()
      query = query.where(sql<boolean>`(strpos(lower(coalesce(name, '')), ${wanted}) > 0 or strpos(id, ${wanted}) > 0)`)
    }
    if (name) query = query.where(sql<boolean>`lower(name) = ${plainLowerCase(name)}`)
    return newestPage(query, page)
  }

  async rename(id: ProfileId, name: string, now: Date): Promise<Profile | undefined> {
    return this.#database
      .updateTable('profiles')
      .set({ name, updated_at: now })
      .where('id', '=', id)
      .returningAll()
      .executeTakeFirst()
      .catch(refuseTakenName('profile_names', 'profile_name_taken', name))
  }

  async noteUse(id: ProfileId, now: Date): Promise<void> {
    await this.#database.updateTable('profiles').set({ last_used_at: now }).where('id', '=', id).execute()
  }

  /**
   * Replaces the state and returns the blob that is unused now: that of the previous state or, when the profile was
   * deleted or has the state of a session that ended later, the given one.
   */
  async replaceState(id: ProfileId, { blob, endedAt }: SavedState, now: Date): Promise<string | null> {
    return this.#database.transaction().execute(async (database) => {
      const before = await database
        .selectFrom('profiles')
        .select(['state_blob', 'state_ended_at'])
        .where('id', '=', id)
        .forUpdate()
        .executeTakeFirst()
      if (!before || (before.state_ended_at && before.state_ended_at > endedAt)) return blob
      await database
        .updateTable('profiles')
        .set({ state_blob: blob, state_ended_at: endedAt, updated_at: now, last_used_at: now })
        .where('id', '=', id)
        .execute()
      return before.state_blob
    })
  }

  /** Removes the profile and returns its last version. Undefined when it was removed already. */
  async delete(id: ProfileId): Promise<Profile | undefined> {
    return this.#database.deleteFrom('profiles').where('id', '=', id).returningAll().executeTakeFirst()
  }

  /** Returns those of the blobs that profiles still use. */
  async listUsedBlobs(names: readonly string[]): Promise<readonly string[]> {
    const rows = await this.#database
      .selectFrom('profiles')
      .select('state_blob')
      .where('state_blob', 'in', names)
      .execute()
    return rows.map(({ state_blob }) => state_blob as string)
  }
}
