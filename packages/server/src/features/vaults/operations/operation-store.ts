import { newId, type SessionId, type VaultItemId, type VaultOperationId } from '@berth/contract/common/ids.ts'
import type { FilledField } from '@berth/contract/vaults/item-operation.ts'
import type { Selectable } from 'kysely'
import type { Database } from '../../../database/database.ts'
import type { VaultOperationTable } from '../../../database/tables.ts'
import { appendEvent, type EventName, type NewEvent } from '../items/event-store.ts'
import { statesBefore, statesUnderWay, type VaultOperationState } from './operation-state.ts'

/** How long ended operations are kept. The events of the item also show their outcome. */
const keptMilliseconds = 24 * 60 * 60 * 1000

export type StoredOperation = Selectable<VaultOperationTable>
export type OperationType = StoredOperation['type']

interface NewOperation {
  readonly itemId: VaultItemId
  readonly sessionId: SessionId
  readonly type: OperationType
  readonly now: Date
  readonly heldUntil: Date
  readonly event: NewEvent
}

interface OperationEnd {
  readonly state: VaultOperationState
  /** The previous state, if it is known. */
  readonly from?: VaultOperationState
  readonly fields?: readonly FilledField[]
  readonly event: NewEvent
}

/** Operations and their states. Each change of a state is one statement that names the permitted previous states. */
export class OperationStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Undefined if the item is gone or another fill of the browser is in progress: the unique index decides. */
  async begin(operation: NewOperation): Promise<VaultOperationId | undefined> {
    const { itemId, sessionId, type, now, heldUntil, event } = operation
    for (const lost of await this.#itemsWithLost(sessionId, now)) await this.settleLost(lost, now)
    return this.#withItem(itemId, async (database) => {
      const begun = await database
        .insertInto('vault_operations')
        .values({
          id: newId('vault-operation', now),
          item_id: itemId,
          session_id: sessionId,
          type,
          state: 'preparing',
          held_until: heldUntil,
          created_at: now,
        })
        .onConflict((conflict) => conflict.doNothing())
        .returning('id')
        .executeTakeFirst()
      if (begun) await appendEvent(database, itemId, event)
      return begun?.id
    })
  }

  /** Whether the operation may send values now: it must be in progress, and its item must exist. */
  async beginWriting(id: VaultOperationId): Promise<boolean> {
    const writing = await this.#database
      .updateTable('vault_operations')
      .set({ state: 'writing' })
      .where('id', '=', id)
      .where('state', 'in', statesBefore('writing'))
      .returning('id')
      .executeTakeFirst()
    return writing !== undefined
  }

  /** Does nothing if the operation has ended or its item is gone. */
  async end(itemId: VaultItemId, id: VaultOperationId, { state, from, fields, event }: OperationEnd): Promise<void> {
    await this.#withItem(itemId, async (database) => {
      const ended = await database
        .updateTable('vault_operations')
        .set({ state, ended_at: event.at, ...(fields && { fields: JSON.stringify(fields) }) })
        .where('id', '=', id)
        .where('state', 'in', from ? [from] : statesBefore(state))
        .returning('id')
        .executeTakeFirst()
      if (!ended) return
      await appendEvent(database, itemId, event)
      await database
        .deleteFrom('vault_operations')
        .where('item_id', '=', itemId)
        .where('ended_at', '<', new Date(event.at.getTime() - keptMilliseconds))
        .execute()
    })
  }

  /** Ends the operations of the item whose server is gone. */
  async settleLost(itemId: VaultItemId, now: Date): Promise<void> {
    const lost = await this.#database
      .selectFrom('vault_operations')
      .select('id')
      .where('item_id', '=', itemId)
      .where('state', 'in', statesUnderWay)
      .where('held_until', '<', now)
      .execute()
    for (const { id } of lost) await this.giveUp(itemId, id, now)
  }

  /** Ends an interrupted operation: it has failed, or its outcome is unknown if values were sent. */
  async giveUp(itemId: VaultItemId, id: VaultOperationId, now: Date): Promise<void> {
    const operation = await this.#database
      .selectFrom('vault_operations')
      .select(['type', 'state', 'session_id'])
      .where('id', '=', id)
      .where('state', 'in', statesUnderWay)
      .executeTakeFirst()
    if (!operation) return
    const { type, session_id } = operation
    const state = operation.state === 'preparing' ? 'failed' : 'unknown'
    const event = { name: eventOf(type, state), at: now, browserId: session_id, data: { operation_id: id } }
    await this.end(itemId, id, { state, from: operation.state, event })
  }

  async #itemsWithLost(sessionId: SessionId, now: Date): Promise<readonly VaultItemId[]> {
    const rows = await this.#database
      .selectFrom('vault_operations')
      .select('item_id')
      .distinct()
      .where('session_id', '=', sessionId)
      .where('type', '=', 'fill')
      .where('state', 'in', statesUnderWay)
      .where('held_until', '<', now)
      .execute()
    return rows.map(({ item_id }) => item_id)
  }

  /** Events of an item require the lock of its row. Undefined if the item is gone. */
  async #withItem<Result>(
    itemId: VaultItemId,
    work: (database: Database) => Promise<Result>,
  ): Promise<Result | undefined> {
    return this.#database.transaction().execute(async (database) => {
      const item = await database
        .selectFrom('vault_items')
        .select('id')
        .where('id', '=', itemId)
        .forUpdate()
        .executeTakeFirst()
      return item && work(database)
    })
  }
}

/** The event that records the end of an operation. */
export function eventOf(type: OperationType, state: 'completed' | 'failed' | 'unknown'): EventName {
  return `${type === 'fill' ? 'fill' : 'webmcp'}.${state}`
}
