import type { Selectable } from 'kysely'
import type { SessionTable } from '../../../database/tables.ts'

/** One running browser and the machine under it, from create to delete. */
export type Session = Selectable<SessionTable>

/** The part of a session that identifies its machine. */
export type SessionOnMachine = Pick<Session, 'id' | 'machine_id'>
