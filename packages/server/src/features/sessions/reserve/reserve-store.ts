import type { MachineId } from '@berth/contract/common/ids.ts'
import { type Insertable, type RawBuilder, sql } from 'kysely'
import type { Database } from '../../../database/database.ts'
import type { SessionTable } from '../../../database/tables.ts'
import { unwaitedCommit } from '../../../database/unwaited-commit.ts'
import type { Session } from '../records/session.ts'
import { throwRefused } from '../records/session-store.ts'
import type { ReserveKind } from './reserve-kind.ts'

/** Which machines of a server's reserve nobody has claimed. */
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
   * Takes the machine, and says whether nobody had. One statement: no machine is given twice. In the transaction that
   * gives it to a session, so that a crash does neither or both; the one that activates the session waits for the disk.
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
   * The same in one statement, for a session that is usable with the machine as it is: takes a place, the machine, and
   * writes the row. Nothing when there is no place, or somebody has taken the machine.
   */
  async claimFor(session: Insertable<SessionTable>, takesPlace: RawBuilder<boolean>): Promise<Session | undefined> {
    const columns = Object.keys(session) as (keyof SessionTable)[]
    return this.#database
      .with(
        (place) => place('place').materialized(),
        (database) => database.selectNoFrom(takesPlace.as('is_free')),
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

  /** Takes a machine out for good, and says whether nobody had claimed it. */
  async remove(machineId: MachineId): Promise<boolean> {
    const removed = await this.#database
      .deleteFrom('reserve_machines')
      .where('machine_id', '=', machineId)
      .returning('machine_id')
      .executeTakeFirst()
    return removed !== undefined
  }

  /** Forgets what an earlier server has left. */
  async clear(): Promise<void> {
    await this.#database.deleteFrom('reserve_machines').where('driver_id', '=', this.#driverId).execute()
  }
}
