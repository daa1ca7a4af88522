/** Tells when egress has been of no use to anybody for a while: after a server that crashed, nobody else would end it. */
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

  /** To be called at the start and after every change of what `isNeeded` looks at. */
  check(): void {
    if (!this.#isStopped && !this.#isNeeded()) {
      this.#timer ??= setTimeout(this.#onOrphaned, this.#limitMilliseconds)
      return
    }
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** For good: what closes after it does not start the time again. */
  stop(): void {
    this.#isStopped = true
    this.check()
  }
}
