import { newId, type VaultItemId } from '@berth/contract/common/ids.ts'
import { type Selectable, sql } from 'kysely'
import type { Database } from '../../../database/database.ts'
import type { VaultItemEventTable } from '../../../database/tables.ts'

/** The limit for each item. Older events are removed. */
const maxEvents = 1000
const maxEventsOfAnswer = 200

export type StoredEvent = Selectable<VaultItemEventTable>

export type EventName =
  | 'item.created'
  | 'item.updated'
  | 'collection.requested'
  | 'collection.submitted'
  | 'fill.started'
  | 'fill.completed'
  | 'fill.failed'
  | 'fill.unknown'
  | 'fill.denied'
  | 'webmcp.started'
  | 'webmcp.completed'
  | 'webmcp.failed'
  | 'webmcp.unknown'
  | 'webmcp.denied'

/** An event of an item. Contains no values. */
export interface NewEvent {
  readonly name: EventName
  readonly at: Date
  readonly browserId?: string
  readonly data?: Readonly<Record<string, string | number | readonly string[]>>
}

/** Appends an event. The transaction must hold the lock of the item's row. */
export async function appendEvent(database: Database, itemId: VaultItemId, event: NewEvent): Promise<void> {
  const { name, at, browserId, data } = event
  await database
    .insertInto('vault_item_events')
    .values({
      id: newId('vault-event', at),
      item_id: itemId,
      name,
      browser_id: browserId ?? null,
      data: data ? JSON.stringify(data) : null,
      created_at: at,
    })
    .execute()
  await database
    .deleteFrom('vault_item_events')
    .where('item_id', '=', itemId)
    .where('sequence', '<=', ({ selectFrom }) =>
      selectFrom('vault_item_events')
        .select('sequence')
        .where('item_id', '=', itemId)
        .orderBy('sequence', 'desc')
        .offset(maxEvents)
        .limit(1),
    )
    .execute()
}

export class EventStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Appends an event to an item, unless the item was deleted meanwhile. */
  async append(itemId: VaultItemId, event: NewEvent): Promise<void> {
    await this.#database.transaction().execute(async (database) => {
      const item = await database
        .selectFrom('vault_items')
        .select('id')
        .where('id', '=', itemId)
        .forUpdate()
        .executeTakeFirst()
      if (item) await appendEvent(database, itemId, event)
    })
  }

  /** Oldest first. Undefined if the item has no event `after`. */
  async list(itemId: VaultItemId, after: string | undefined): Promise<readonly StoredEvent[] | undefined> {
    const position = after === undefined ? 0 : await this.#positionOf(itemId, after)
    if (position === undefined) return undefined
    return this.#database
      .selectFrom('vault_item_events')
      .selectAll()
      .where('item_id', '=', itemId)
      .where('sequence', '>', position)
      .orderBy(sql`sequence`)
      .limit(maxEventsOfAnswer)
      .execute()
  }

  async #positionOf(itemId: VaultItemId, eventId: string): Promise<number | undefined> {
    const event = await this.#database
      .selectFrom('vault_item_events')
      .select('sequence')
      .where('item_id', '=', itemId)
      .where('id', '=', eventId as StoredEvent['id'])
      .executeTakeFirst()
    return event?.sequence
  }
}
