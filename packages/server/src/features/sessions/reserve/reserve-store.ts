import type { MachineId } from '@berth/contract/common/ids.ts'
import { type Insertable, type RawBuilder, sql } from 'kysely'
import type { Database } from '../../../database/database.ts'
import type { SessionTable } from '../../../database/tables.ts'
import { unwaitedCommit } from '../../../database/unwaited-commit.ts'
import type { Session } from '../records/session.ts'
import { throwRefused } from '../records/session-store.ts'
import type { ReserveKind } from './reserve-kind.ts'

/** The unclaimed machines of a server's reserve. */
export class ReserveStore {
  readonly #database: Database
  readonly #driverId: string

  constructor(database: Database, driverId: string) {
    this.#database = database
    this.#driverId = driverId
  }

  async insert(machineId: MachineId, kind: ReserveKind, readyAt: Date): Promise<void> {
    await this.#database
      .insertInto('reserve_machines')
      .values({ machine_id: machineId, driver_id: this.#driverId, kind, ready_at: readyAt })
      .execute()
  }

  /**
   * Claims the machine and returns whether this call did. One statement, so no machine is given out twice. It runs in
   * the transaction that assigns the machine to a session, so that a crash leaves both or neither. The statement that
   * activates the session waits for the disk.
   */
  async claim(machineId: MachineId, database: Database = this.#database): Promise<boolean> {
    const claimed = await database
      .deleteFrom('reserve_machines')
      .where('machine_id', '=', machineId)
      .where('driver_id', '=', this.#driverId)
      .returning(['machine_id', unwaitedCommit])
      .executeTakeFirst()
    return claimed !== undefined
  }

  /**
   * Takes a slot, claims the machine and inserts the row in one statement, for a session that can use the machine as it
   * is. Undefined if no slot is free or the machine was claimed by another call.
   */
  async claimFor(session: Insertable<SessionTable>, takesSlot: RawBuilder<boolean>): Promise<Session | undefined> {
    const columns = Object.keys(session) as (keyof SessionTable)[]
    return this.#database
      .with(
        (place) => place('place').materialized(),
        (database) => database.selectNoFrom(takesSlot.as('is_free')),
      )
      .with('claimed', (database) =>
        database
          .deleteFrom('reserve_machines')
          .using('place')
          .where('is_free', '=', true)
          .where('reserve_machines.machine_id', '=', session.machine_id)
          .where('driver_id', '=', this.#driverId)
          .returning('machine_id'),
      )
      .insertInto('sessions')
      .columns(columns)
      .expression((database) =>
        database.selectFrom('claimed').select(columns.map((column) => sql`${session[column]}`.as(column))),
      )
      .returningAll()
      .executeTakeFirst()
      .catch((error: unknown) => throwRefused(error, session))
  }

  /** Removes a machine permanently, and returns whether it was unclaimed. */
  async remove(machineId: MachineId): Promise<boolean> {
    const removed = await this.#database
      .deleteFrom('reserve_machines')
      .where('machine_id', '=', machineId)
      .returning('machine_id')
      .executeTakeFirst()
    return removed !== undefined
  }

  /** Removes the rows of an earlier run of this server. */
  async clear(): Promise<void> {
    await this.#database.deleteFrom('reserve_machines').where('driver_id', '=', this.#driverId).execute()
  }
}
