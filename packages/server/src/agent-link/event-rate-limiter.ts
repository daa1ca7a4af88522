import { setTimeout as delay } from 'node:timers/promises'

const creditPerSecond = 100
const maxCredit = 1_000
/** Of an event; one of an agent that works as it should is shorter, or rare. */
const defaultCharactersPerCredit = 1_000

/** Slows down an agent that sends events without end: each costs the server time that is taken from other sessions. */
export class EventRateLimiter {
  readonly #price: number
  readonly #charactersPerCredit: number
  #credit = maxCredit
  #countedAt = performance.now()

  /** The least that an event costs. At a cost of 1, a hundred events a second pass without limit of time. */
  constructor(price = 1, charactersPerCredit = defaultCharactersPerCredit) {
    this.#price = price
    this.#charactersPerCredit = charactersPerCredit
  }

  /** Resolves when it is the event's time; at once for all that an agent sends that works as it should. */
  async admit(length: number, signal: AbortSignal): Promise<void> {
    const now = performance.now()
    this.#credit = Math.min(maxCredit, this.#credit + ((now - this.#countedAt) / 1_000) * creditPerSecond)
    this.#countedAt = now
    this.#credit -= Math.max(this.#price, length / this.#charactersPerCredit)
    if (this.#credit < 0) await delay((-this.#credit / creditPerSecond) * 1_000, undefined, { signal })
  }
}
