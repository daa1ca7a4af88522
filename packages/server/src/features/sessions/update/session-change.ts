import type { BrowserUpdateRequest } from '@berth/contract/browsers/browser-update.ts'
import type { Updateable } from 'kysely'
import type { SessionTable } from '../../../database/tables.ts'
import type { Session } from '../records/session.ts'

/** One thing that an update changes in a session. */
export interface SessionChange {
  /** What it changes in the session's row. */
  readonly columns?: Updateable<SessionTable>
  /** Changes the running session; what it rejects with refuses the whole update. */
  readonly apply?: () => Promise<void>
  /** Takes back what `apply` did, because the update was refused after it. */
  readonly revert?: () => Promise<void>
  /** Dispatched when the whole update is done, and not awaited: it cannot fail the update. */
  readonly afterwards?: () => void
}

/**
 * Checks one part of an update against the session and says what it changes; nothing when the request does not name
 * that part. It throws what refuses the update, and does nothing to the session.
 */
export type PlanChange = (session: Session, update: BrowserUpdateRequest) => Promise<SessionChange | undefined>

/** Makes the running session what its row says, after an update that was cut off. Where it is so already, nothing happens. */
export type RestoreSession = (session: Session) => Promise<void>
