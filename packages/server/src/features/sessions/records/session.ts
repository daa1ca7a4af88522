import type { Selectable } from 'kysely'
import type { SessionTable } from '../../../database/tables.ts'

/** One running browser and the machine under it, from create to delete. */
export type Session = Selectable<SessionTable>

/** A session, as far as its machine goes. */
export type SessionOnMachine = Pick<Session, 'id' | 'machine_id'>

/** What a caller is told whose session another server has: it has only just got it, or machines never change servers. */
export type SessionElsewhere = 'session_moving' | 'session_unreachable'
