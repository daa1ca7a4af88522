import { setTimeout as delay } from 'node:timers/promises'

const creditPerSecond = 100
const maxCredit = 1_000
/** For the cost of an event. Events of a correct agent are shorter or rare. */
const defaultCharactersPerCredit = 1_000

/** Slows down an agent that sends events without end, because each costs processor time that other sessions need. */
export class EventRateLimiter {
  readonly #minimumCost: number
  readonly #charactersPerCredit: number
  #credit = maxCredit
  #countedAt = performance.now()

  /** `minimumCost` is the minimum cost of an event. At a cost of 1, a hundred events per second are never delayed. */
  constructor(minimumCost = 1, charactersPerCredit = defaultCharactersPerCredit) {
    this.#minimumCost = minimumCost
    this.#charactersPerCredit = charactersPerCredit
  }

  /** Resolves when the event may be processed: immediately for a correct agent. */
  async admit(length: number, signal: AbortSignal): Promise<void> {
    const now = performance.now()
    this.#credit = Math.min(maxCredit, this.#credit + ((now - this.#countedAt) / 1_000) * creditPerSecond)
    this.#countedAt = now
    this.#credit -= Math.max(this.#minimumCost, length / this.#charactersPerCredit)
    if (this.#credit < 0) await delay((-this.#credit / creditPerSecond) * 1_000, undefined, { signal })
  }
}
