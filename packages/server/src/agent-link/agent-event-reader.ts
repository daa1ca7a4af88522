import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type AgentEventRecord,
  acknowledgeAgentEvents,
  followAgentEvents,
} from '@berth/contract/agent/agent-endpoints.ts'
import { within } from '@berth/runtime/async/deadline.ts'
import type { ReachableMachine } from '../drivers/driver.ts'
import { commandAgent } from './command-agent.ts'
import { EventRateLimiter } from './event-rate-limiter.ts'
import { followAgent } from './follow-agent.ts'

/**
 * Takes a record for good; when it rejects, the record comes again. After a server was killed a record may come that
 * an earlier one has taken: who stores records stores their sequence numbers with them.
 */
export type TakeAgentEvent = (record: AgentEventRecord) => Promise<void> | void

/** Each event is a line in the log, which must not be filled by one session; an agent gives up long before ten in a row. */
const eventPrice = 100
const shortestPauseMilliseconds = 50
const defaultLongestPauseMilliseconds = 5_000
interface AgentEventReaderOptions {
  /** What an event costs of the pace. */
  readonly price?: number
  readonly longestPauseMilliseconds?: number
  /** Before it resolves the agent cannot answer, and is asked nothing. */
  readonly begin?: Promise<void>
}

/** For what an agent has written before it ended. */
const farewellMilliseconds = 1_000

/**
 * Takes the events of one agent: in order, each of them or the number of those that are lost. It says nothing about
 * whether the machine is alive: a stream that ends, or cannot be read, is opened again after the last event that was taken.
 */
export class AgentEventReader {
  readonly #machine: ReachableMachine
  readonly #take: TakeAgentEvent
  readonly #abort = new AbortController()
  /** Aborts when no stream is opened any more. */
  readonly #last = new AbortController()
  readonly #pace: EventRateLimiter
  readonly #longestPauseMilliseconds: number
  readonly #ended: Promise<void>
  #taken: number | undefined
  #acknowledged: number | undefined
  #isAcknowledging = false

  constructor(machine: ReachableMachine, take: TakeAgentEvent, options: AgentEventReaderOptions = {}) {
    const { price = eventPrice, longestPauseMilliseconds = defaultLongestPauseMilliseconds } = options
    this.#pace = new EventRateLimiter(price)
    this.#longestPauseMilliseconds = longestPauseMilliseconds
    this.#machine = machine
    this.#take = take
    this.#ended = this.#readAgainAndAgain(options.begin)
  }

  /** Takes what an agent that has ended told before. */
  async finish(): Promise<void> {
    this.#last.abort()
    await within(farewellMilliseconds, this.#ended).catch(() => {}) // Its events come faster than they are taken.
    this.close()
  }

  close(): void {
    this.#last.abort()
    this.#abort.abort()
  }

  async #readAgainAndAgain(begin: Promise<void> | undefined): Promise<void> {
    const { signal } = this.#last
    if (begin) await Promise.race([begin, once(signal, 'abort')])
    for (let pause = shortestPauseMilliseconds; ; pause = Math.min(pause * 2, this.#longestPauseMilliseconds)) {
      const openedAt = performance.now()
      // Whatever ends a stream, AgentWatch finds out whether the agent is still there.
      await this.#read().catch(() => {})
      if (signal.aborted) return
      // A stream that lasted was not a failed attempt.
      if (performance.now() - openedAt > this.#longestPauseMilliseconds) pause = shortestPauseMilliseconds
      await delay(pause, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
    }
  }

  async #read(): Promise<void> {
    const { signal } = this.#abort
    const query = this.#taken === undefined ? '' : `?after=${this.#taken}`
    for await (const record of followAgent(this.#machine, followAgentEvents, { query, signal, pace: this.#pace })) {
      this.#checkOrder(record)
      await this.#take(record)
      if (signal.aborted) return
      this.#taken = record.sequence
      void this.#acknowledge()
    }
  }

  #checkOrder(record: AgentEventRecord): void {
    if (this.#taken === undefined) return // Where an earlier server has stopped, the agent knows.
    const before = record.sequence - ('lost' in record ? record.lost : 1)
    if (before !== this.#taken) throw new Error(`its event ${record.sequence} follows ${this.#taken}`)
  }

  /** One at a time: what is taken meanwhile is acknowledged together. */
  async #acknowledge(): Promise<void> {
    if (this.#isAcknowledging) return
    this.#isAcknowledging = true
    try {
      while (this.#taken !== undefined && this.#taken !== this.#acknowledged && !this.#abort.signal.aborted) {
        const sequence = this.#taken
        await commandAgent(this.#machine, acknowledgeAgentEvents, { sequence })
        this.#acknowledged = sequence
      }
    } catch {
      // The next event, or the next stream, tells the agent as well.
    } finally {
      this.#isAcknowledging = false
    }
  }
}
