/** Milliseconds before a key is pressed, and how long it stays down. */
export interface Beat {
  readonly pause: number
  readonly hold: number
}

/** Plays a rhythm, faster if it would not end in time; the time that the keys themselves take counts too. */
export class TypingPace {
  readonly #beats: readonly Beat[]
  readonly #limitMilliseconds: number
  readonly #now: () => number
  readonly #startedAt: number
  #index = 0
  /** Total time of the remaining beats. */
  #planned: number
  #waited = 0

  constructor(beats: readonly Beat[], limitMilliseconds: number, now: () => number = () => performance.now()) {
    this.#beats = beats
    this.#limitMilliseconds = limitMilliseconds
    this.#now = now
    this.#startedAt = now()
    this.#planned = beats.reduce((sum, { pause, hold }) => sum + pause + hold, 0)
  }

  next(): Beat {
    const { pause, hold } = this.#beats[this.#index] as Beat
    const factor = this.#factor()
    this.#index += 1
    this.#planned -= pause + hold
    const beat = { pause: pause * factor, hold: hold * factor }
    this.#waited += beat.pause + beat.hold
    return beat
  }

  #factor(): number {
    if (this.#planned <= 0) return 1
    const elapsed = this.#now() - this.#startedAt
    const forEachKey = this.#index === 0 ? 0 : Math.max(0, elapsed - this.#waited) / this.#index
    const left = this.#limitMilliseconds - elapsed - forEachKey * (this.#beats.length - this.#index)
    return Math.min(1, Math.max(0, left / this.#planned))
  }
}
