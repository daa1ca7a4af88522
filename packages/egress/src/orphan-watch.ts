/** Reports that egress has been unused for a while. After a crash of the server, nothing else would stop it. */
export class OrphanWatch {
  readonly #limitMilliseconds: number
  readonly #isNeeded: () => boolean
  readonly #onOrphaned: () => void
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(options: { limitMilliseconds: number; isNeeded: () => boolean; onOrphaned: () => void }) {
    this.#limitMilliseconds = options.limitMilliseconds
    this.#isNeeded = options.isNeeded
    this.#onOrphaned = options.onOrphaned
  }

  /** Call at the start and after every change that affects `isNeeded`. */
  check(): void {
    if (!this.#isStopped && !this.#isNeeded()) {
      this.#timer ??= setTimeout(this.#onOrphaned, this.#limitMilliseconds)
      return
    }
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Stops permanently. Later calls of `check` do not restart the timer. */
  stop(): void {
    this.#isStopped = true
    this.check()
  }
}
