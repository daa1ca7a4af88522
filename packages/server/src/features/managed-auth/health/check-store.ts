import type { AuthCheckId, AuthConnectionId, SessionId } from '@berth/contract/common/ids.ts'
import type { ConnectionStatus } from '@berth/contract/managed-auth/connection.ts'
import { type Insertable, type Selectable, sql, type Transaction, type Updateable } from 'kysely'
import type { Database } from '../../../database/database.ts'
import type { AuthCheckTable, Tables } from '../../../database/tables.ts'

export type StoredCheck = Selectable<AuthCheckTable>

export class CheckStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async insert(check: Insertable<AuthCheckTable>): Promise<void> {
    await this.#database.insertInto('auth_checks').values(check).execute()
  }

  async note(id: AuthCheckId, columns: Updateable<AuthCheckTable>): Promise<void> {
    await this.#database.updateTable('auth_checks').set(columns).where('id', '=', id).execute()
  }

  /** Removes the unfinished checks of a killed server, and returns their sessions. */
  async removeUnfinished(connectionId: AuthConnectionId): Promise<readonly SessionId[]> {
    const removed = await this.#database
      .deleteFrom('auth_checks')
      .where('connection_id', '=', connectionId)
      .where('status', 'is', null)
      .returning('session_id')
      .execute()
    return removed.flatMap(({ session_id }) => session_id ?? [])
  }

  /**
   * Stores the result of a check, unless a login has succeeded since its start and the result is outdated. Returns
   * whether it was stored.
   */
  async apply(
    { id, connection_id, created_at }: Pick<StoredCheck, 'id' | 'connection_id' | 'created_at'>,
    found: { readonly status: ConnectionStatus | undefined; readonly error?: { code: string; message: string } },
    { now, also }: { readonly now: Date; readonly also: (transaction: Transaction<Tables>) => Promise<void> },
  ): Promise<boolean> {
    return this.#database.transaction().execute(async (transaction) => {
      const applied = await transaction
        .updateTable('auth_connections')
        .set({ last_auth_check_at: now, ...(found.status && { status: found.status }) })
        .where('id', '=', connection_id)
        .where(sql<boolean>`coalesce(last_auth_check_at, '-infinity') <= ${created_at}`)
        .returning('status')
        .executeTakeFirst()
      const status = applied?.status ?? found.status
      await transaction
        .updateTable('auth_checks')
        .set(({ ref }) => ({
          status: status ?? ref('previous_status'),
          ended_at: now,
          error_code: found.error?.code ?? null,
          error_message: found.error?.message ?? null,
        }))
        .where('id', '=', id)
        .execute()
      if (applied) await also(transaction)
      return applied !== undefined
    })
  }
}
