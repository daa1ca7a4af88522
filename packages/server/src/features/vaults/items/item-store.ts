import type { VaultId, VaultItemId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Insertable, Selectable, Updateable } from 'kysely'
import type { Database } from '../../../database/database.ts'
import type { VaultCollectionTable, VaultItemTable } from '../../../database/tables.ts'
import { appendEvent, type NewEvent } from './event-store.ts'

export type StoredItem = Selectable<VaultItemTable>
export type StoredCollection = Selectable<VaultCollectionTable>

export interface ItemWithCollection {
  readonly item: StoredItem
  readonly collection: StoredCollection | undefined
}

/** A new link for entering values, before it belongs to an item. */
export type NewCollection = Omit<StoredCollection, 'item_id'>

/** Limited because all items of a vault are listed together. */
export const maxItemsOfVault = 200

/** Items and their links. Every change of an item first locks its row, and records an event. */
export class ItemStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Creates the item, or returns the one with its key. Of two concurrent calls with one key, one creates. */
  async upsert(
    item: Insertable<VaultItemTable>,
    { collection, event }: { readonly collection: NewCollection | undefined; readonly event: NewEvent },
  ): Promise<ItemWithCollection & { readonly isNew: boolean }> {
    return this.#database.transaction().execute(async (database) => {
      const vault = await database
        .selectFrom('vaults')
        .select('id')
        .where('id', '=', item.vault_id)
        .forNoKeyUpdate()
        .executeTakeFirst()
      if (!vault) throw new BerthError('vault_not_found', { vault: item.vault_id })
      const existing = await find(database, item.vault_id, item.key)
      if (existing) return { ...existing, isNew: false }
      const { count } = await database
        .selectFrom('vault_items')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where('vault_id', '=', item.vault_id)
        .executeTakeFirstOrThrow()
      if (count >= maxItemsOfVault) throw new BerthError('vault_full', { limit: maxItemsOfVault })

      const made = await database.insertInto('vault_items').values(item).returningAll().executeTakeFirstOrThrow()
      await appendEvent(database, made.id, event)
      return { item: made, collection: collection && (await keep(database, made.id, collection)), isNew: true }
    })
  }

  async find(vaultId: VaultId, key: string): Promise<ItemWithCollection | undefined> {
    return find(this.#database, vaultId, key)
  }

  /** Newest first. */
  async list(vaultId: VaultId): Promise<readonly ItemWithCollection[]> {
    const [items, collections] = await Promise.all([
      this.#database
        .selectFrom('vault_items')
        .selectAll()
        .where('vault_id', '=', vaultId)
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .execute(),
      this.#database
        .selectFrom('vault_collections')
        .innerJoin('vault_items', 'vault_items.id', 'vault_collections.item_id')
        .selectAll('vault_collections')
        .where('vault_items.vault_id', '=', vaultId)
        .execute(),
    ])
    const byItem = new Map(collections.map((collection) => [collection.item_id, collection]))
    return items.map((item) => ({ item, collection: byItem.get(item.id) }))
  }

  /**
   * Changes the version that was read, and replaces its link. Undefined if the item was changed or deleted meanwhile:
   * the condition decides between concurrent changes.
   */
  async change(
    { id, version }: StoredItem,
    columns: Updateable<VaultItemTable>,
    { collection, event }: { readonly collection: NewCollection | undefined; readonly event: NewEvent },
  ): Promise<ItemWithCollection | undefined> {
    return this.#database.transaction().execute(async (database) => {
      const item = await database
        .updateTable('vault_items')
        .set({ ...columns, version: version + 1 })
        .where('id', '=', id)
        .where('version', '=', version)
        .returningAll()
        .executeTakeFirst()
      if (!item) return undefined
      await database.deleteFrom('vault_collections').where('item_id', '=', id).execute()
      await appendEvent(database, id, event)
      return { item, collection: collection && (await keep(database, id, collection)) }
    })
  }

  /** Returns the item's link if it is valid, otherwise stores the given one. Concurrent calls return the same link. */
  async renewCollection(
    id: VaultItemId,
    collection: NewCollection,
    { now, event }: { readonly now: Date; readonly event: NewEvent },
  ): Promise<ItemWithCollection | undefined> {
    return this.#database.transaction().execute(async (database) => {
      const item = await database
        .selectFrom('vault_items')
        .selectAll()
        .where('id', '=', id)
        .forUpdate()
        .executeTakeFirst()
      if (!item) return undefined
      const known = await collectionOf(database, id)
      if (known && known.expires_at > now) return { item, collection: known }
      await appendEvent(database, id, event)
      return { item, collection: await keep(database, id, collection) }
    })
  }

  /** The item of a link, while the link is valid. */
  async findByToken(tokenHash: Buffer, now: Date) {
    return this.#database
      .selectFrom('vault_collections')
      .innerJoin('vault_items', 'vault_items.id', 'vault_collections.item_id')
      .innerJoin('vaults', 'vaults.id', 'vault_items.vault_id')
      .selectAll('vault_items')
      .select('vaults.project_id')
      .where('vault_collections.token_hash', '=', tokenHash)
      .where('vault_collections.expires_at', '>', now)
      .executeTakeFirst()
  }

  /** Of two concurrent deletes, one returns true. */
  async delete(vaultId: VaultId, key: string): Promise<boolean> {
    const deleted = await this.#database
      .deleteFrom('vault_items')
      .where('vault_id', '=', vaultId)
      .where('key', '=', key)
      .returning('id')
      .executeTakeFirst()
    return deleted !== undefined
  }
}

async function find(database: Database, vaultId: VaultId, key: string): Promise<ItemWithCollection | undefined> {
  const item = await database
    .selectFrom('vault_items')
    .selectAll()
    .where('vault_id', '=', vaultId)
    .where('key', '=', key)
    .executeTakeFirst()
  return item && { item, collection: await collectionOf(database, item.id) }
}

async function collectionOf(database: Database, id: VaultItemId): Promise<StoredCollection | undefined> {
  return database.selectFrom('vault_collections').selectAll().where('item_id', '=', id).executeTakeFirst()
}

async function keep(database: Database, id: VaultItemId, collection: NewCollection): Promise<StoredCollection> {
  return database
    .insertInto('vault_collections')
    .values({ item_id: id, ...collection })
    .onConflict((conflict) => conflict.column('item_id').doUpdateSet(collection))
    .returningAll()
    .executeTakeFirstOrThrow()
}
