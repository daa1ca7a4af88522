/** What one machine may do in one turn of the event loop, in bytes. */
const turnBytes = 512 * 1024
/** What a chunk costs besides its bytes: many small ones are as dear as a few large ones. */
const chunkBytes = 8 * 1024
/** So many may go on with each turn: what they do then is about as much as a turn allows. */
const turnStarts = 8
/** How long the next one waits while much of the machine waits for slow readers: all of it may have to go out at once. */
const crowdedMilliseconds = 5

/**
 * Divides the time of this process between machines: what one has to do waits when it has done its part of a turn, so
 * that no flood delays a neighbour by more than that.
 */
export class Turn {
  #left = turnBytes
  #isScheduled = false
  readonly #waiting: (() => void)[] = []
  readonly #isCrowded: () => boolean

  constructor(isCrowded: () => boolean) {
    this.#isCrowded = isCrowded
  }

  /** Takes work into account; false when the turn is used up: then `next` tells when to go on. */
  spend(bytes: number): boolean {
    this.#schedule()
    this.#left -= bytes + chunkBytes
    return this.#left > 0
  }

  /** Calls back in a later turn, in order. */
  next(goOn: () => void): void {
    this.#waiting.push(goOn)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    if (this.#waiting.length > 0 && this.#isCrowded()) setTimeout(() => this.#begin(1), crowdedMilliseconds)
    else setImmediate(() => this.#begin(turnStarts))
  }

  #begin(starts: number): void {
    this.#isScheduled = false
    this.#left = turnBytes
    for (const goOn of this.#waiting.splice(0, starts)) goOn()
    if (this.#waiting.length > 0) this.#schedule()
  }
}
