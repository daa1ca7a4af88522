import type { SessionId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { SessionStore } from '../records/session-store.ts'

interface StandbyNotesOptions {
  readonly id: SessionId
  readonly store: Pick<SessionStore, 'beginStandby' | 'endStandby'>
  readonly clock: Clock
  readonly logger: Logger
}

interface Note {
  readonly isFrozen: boolean
  readonly at: Date
}

/** Records when the machine of a session was frozen and thawed. Waking a session never waits for the database. */
export class StandbyNotes {
  readonly #options: StandbyNotesOptions
  /** In chronological order. */
  readonly #notes: Note[] = []
  #isWriting = false

  constructor(options: StandbyNotesOptions) {
    this.#options = options
  }

  note(isFrozen: boolean): void {
    this.#notes.push({ isFrozen, at: this.#options.clock.now() })
    this.retry()
  }

  /** Writes again what could not be written while the database was unavailable. */
  retry(): void {
    if (!this.#isWriting) void this.#write()
  }

  async #write(): Promise<void> {
    const { id, store, logger } = this.#options
    this.#isWriting = true
    try {
      for (let [note] = this.#notes; note; [note] = this.#notes) {
        await (note.isFrozen ? store.beginStandby(id, note.at) : store.endStandby(id, note.at))
        this.#notes.shift()
      }
    } catch (error) {
      // The reaper's next round writes it again.
      const facts = { sessionId: id, reason: (error as Error).message }
      logger.warn(facts, 'could not record the standby of a session; retrying')
    } finally {
      this.#isWriting = false
    }
  }
}
