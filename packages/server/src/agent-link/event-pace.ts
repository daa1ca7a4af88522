import { setTimeout as delay } from 'node:timers/promises'
import type { AgentEvent } from '@berth/contract/agent/agent-endpoints.ts'

const creditPerSecond = 100
const maxCredit = 1_000
/** Of an event; one of an agent in its right mind is shorter, or rare. */
const charactersPerCredit = 1_000
/** A crash is noted in the log, which must not be filled by one session; an agent gives up long before ten in a row. */
const prices: Readonly<Record<AgentEvent['event'], number>> = { state: 1, service_crashed: 100 }

/** Slows down who sends events without end: each costs the server time that is taken from other sessions. */
export class EventPace {
  #credit = maxCredit
  #countedAt = performance.now()

  /** Resolves when it is the event's time; at once for all that an agent in its right mind sends. */
  async admit({ event }: AgentEvent, length: number, signal: AbortSignal): Promise<void> {
    const now = performance.now()
    this.#credit = Math.min(maxCredit, this.#credit + ((now - this.#countedAt) / 1_000) * creditPerSecond)
    this.#countedAt = now
    this.#credit -= Math.max(prices[event], length / charactersPerCredit)
    if (this.#credit < 0) await delay((-this.#credit / creditPerSecond) * 1_000, undefined, { signal })
  }
}
