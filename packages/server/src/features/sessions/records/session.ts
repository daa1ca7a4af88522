import type { Selectable } from 'kysely'
import type { SessionTable } from '../../../database/tables.ts'

/** One running browser and the machine under it, from create to delete. */
export type Session = Selectable<SessionTable>

/** The part of a session that identifies its machine. */
export type SessionOnMachine = Pick<Session, 'id' | 'machine_id'>

/** The error for a session of another server: it has just moved there, or sessions of this driver never move. */
export type SessionElsewhere = 'session_moving' | 'session_unreachable'
