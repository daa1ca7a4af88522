/**
 * Whether somebody uses the session: an open client is activity, and the count of idle time begins when the last one
 * has gone.
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

  /** Milliseconds since the epoch at which the last activity ended; null while there is some. */
  get idleSince(): number | null {
    return this.#open > 0 ? null : this.#idleSince
  }

  /** Counts an activity in; the function that it returns counts it out, once. */
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

  /** Begins the idle time anew: what just happened was a use. */
  restart(): void {
    this.#idleSince = this.#now()
    this.#onChange()
  }
}
