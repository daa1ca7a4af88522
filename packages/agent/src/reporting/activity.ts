/**
 * Whether somebody uses the session: an open client counts as activity, and idle time starts when the last one has
 * disconnected.
 */
export class Activity {
  #open = 0
  #idleSince: number
  readonly #onChange: () => void
  readonly #now: () => number

  constructor(now: () => number, onChange: () => void) {
    this.#now = now
    this.#onChange = onChange
    this.#idleSince = now()
  }

  /** Milliseconds since the epoch when the last activity ended; null during activity. */
  get idleSince(): number | null {
    return this.#open > 0 ? null : this.#idleSince
  }

  /** Registers an activity; the returned function ends it, once. */
  begin(): () => void {
    this.#open += 1
    if (this.#open === 1) this.#onChange()
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      this.#open -= 1
      if (this.#open === 0) this.restart()
    }
  }

  /** Restarts the idle time after a short use. */
  restart(): void {
    this.#idleSince = this.#now()
    this.#onChange()
  }
}
