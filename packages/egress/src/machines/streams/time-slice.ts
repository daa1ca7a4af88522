/** The bytes that one machine may process in one slice. */
const sliceBytes = 512 * 1024
/** The fixed cost of a chunk, in bytes: many small chunks cost as much as a few large ones. */
const chunkCostBytes = 8 * 1024
/** How many waiting tasks resume per slice. Together they use about a slice. */
const resumesPerSlice = 8
/** The pause between slices while much of the machine waits for slow readers, all of which may resume at once. */
const congestedPauseMilliseconds = 5

/**
 * Divides this process's time between machines. Work beyond a machine's slice waits for a later one, so that no flood
 * delays another machine for longer than a slice.
 */
export class TimeSlice {
  #remainingBytes = sliceBytes
  #isScheduled = false
  readonly #waiting: (() => void)[] = []
  readonly #isCongested: () => boolean

  constructor(isCrowded: () => boolean) {
    this.#isCongested = isCrowded
  }

  /** Charges work to the slice. Returns false when the slice is used up: call `next` then. */
  spend(bytes: number): boolean {
    this.#schedule()
    this.#remainingBytes -= bytes + chunkCostBytes
    return this.#remainingBytes > 0
  }

  /** Calls back in a later slice, in order. */
  resumeLater(goOn: () => void): void {
    this.#waiting.push(goOn)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    if (this.#waiting.length > 0 && this.#isCongested()) setTimeout(() => this.#start(1), congestedPauseMilliseconds)
    else setImmediate(() => this.#start(resumesPerSlice))
  }

  #start(starts: number): void {
    this.#isScheduled = false
    this.#remainingBytes = sliceBytes
    for (const goOn of this.#waiting.splice(0, starts)) goOn()
    if (this.#waiting.length > 0) this.#schedule()
  }
}
