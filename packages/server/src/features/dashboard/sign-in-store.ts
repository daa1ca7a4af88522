import type { ApiKeyId } from '@berth/contract/common/ids.ts'
import type { Database } from '../../database/database.ts'

/** Beyond it, the oldest sessions of a key are removed. */
const maxSessionsOfKey = 20

export class SignInStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Adds a session, and removes expired ones and the oldest ones beyond the limit of the key. */
  async add(session: NewDashboardSession): Promise<void> {
    const { tokenHash, keyId, now, expiresAt } = session
    await this.#database.transaction().execute(async (database) => {
      await database.deleteFrom('dashboard_sessions').where('expires_at', '<=', now).execute()
      await database
        .deleteFrom('dashboard_sessions')
        .where('token_hash', 'in', (oldest) =>
          oldest
            .selectFrom('dashboard_sessions')
            .select('token_hash')
            .where('key_id', '=', keyId)
            .orderBy('created_at', 'desc')
            .offset(maxSessionsOfKey - 1),
        )
        .execute()
      await database
        .insertInto('dashboard_sessions')
        .values({ token_hash: tokenHash, key_id: keyId, created_at: now, expires_at: expiresAt })
        .execute()
    })
  }

  async remove(tokenHash: Buffer): Promise<void> {
    await this.#database.deleteFrom('dashboard_sessions').where('token_hash', '=', tokenHash).execute()
  }

  async addLink(link: {
    readonly codeHash: Buffer
    readonly keyId: ApiKeyId
    readonly expiresAt: Date
  }): Promise<void> {
    const { codeHash, keyId, expiresAt } = link
    await this.#database
      .insertInto('dashboard_links')
      .values({ code_hash: codeHash, key_id: keyId, expires_at: expiresAt })
      .execute()
  }

  /** Consumes the link and returns its key. Of two concurrent callers, one gets undefined. */
  async takeLink(codeHash: Buffer, now: Date): Promise<ApiKeyId | undefined> {
    const link = await this.#database
      .deleteFrom('dashboard_links')
      .where('code_hash', '=', codeHash)
      .returning(['key_id', 'expires_at'])
      .executeTakeFirst()
    return link && link.expires_at > now ? link.key_id : undefined
  }
}

export interface NewDashboardSession {
  readonly tokenHash: Buffer
  readonly keyId: ApiKeyId
  readonly now: Date
  readonly expiresAt: Date
}
