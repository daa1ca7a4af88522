import type { BrowserUpdateRequest } from '@berth/contract/browsers/browser-update.ts'
import type { Updateable } from 'kysely'
import type { SessionTable } from '../../../database/tables.ts'
import type { Session } from '../records/session.ts'

/** One change of an update. */
export interface SessionChange {
  /** The changed columns of the session's row. */
  readonly columns?: Updateable<SessionTable>
  /** Changes the running session. A rejection rejects the whole update. */
  readonly apply?: () => Promise<void>
  /** Undoes `apply`, if the update failed after it. */
  readonly revert?: () => Promise<void>
  /** Called after the whole update and not awaited, so it cannot fail the update. */
  readonly afterwards?: () => void
}

/**
 * Checks one part of an update against the session and returns its change. Undefined if the request does not contain
 * that part. Throws to reject the update, and does not modify the session.
 */
export type PlanChange = (session: Session, update: BrowserUpdateRequest) => Promise<SessionChange | undefined>

/** Applies the row to the running session after an interrupted update. Does nothing if both already agree. */
export type RestoreSession = (session: Session) => Promise<void>
