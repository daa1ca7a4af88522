import { setTimeout as delay } from 'node:timers/promises'
import type { AgentEvent } from '@berth/contract/agent/agent-endpoints.ts'

const creditPerSecond = 100
const maxCredit = 1_000
/** Events of an intact agent are shorter, or rare. */
const charactersPerCredit = 1_000
/** A crash is logged, and one session must not fill the log. An intact agent gives up before ten crashes in a row. */
const prices: Readonly<Record<AgentEvent['event'], number>> = { state: 1, service_crashed: 100 }

/** Limits the rate of an agent's events, because each takes server time from other sessions. */
export class EventRateLimiter {
  #credit = maxCredit
  #countedAt = performance.now()

  /** Resolves when the event may be processed. Immediately for everything that an intact agent sends. */
  async admit({ event }: AgentEvent, length: number, signal: AbortSignal): Promise<void> {
    const now = performance.now()
    this.#credit = Math.min(maxCredit, this.#credit + ((now - this.#countedAt) / 1_000) * creditPerSecond)
    this.#countedAt = now
    this.#credit -= Math.max(prices[event], length / charactersPerCredit)
    if (this.#credit < 0) await delay((-this.#credit / creditPerSecond) * 1_000, undefined, { signal })
  }
}
