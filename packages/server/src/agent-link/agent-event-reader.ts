import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type AgentEventRecord,
  acknowledgeAgentEvents,
  followAgentEvents,
} from '@berth/contract/agent/agent-endpoints.ts'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import { within } from '@berth/runtime/async/deadline.ts'
import type { z } from 'zod'
import type { ReachableMachine } from '../drivers/driver.ts'
import { commandAgent } from './command-agent.ts'
import { EventRateLimiter } from './event-rate-limiter.ts'
import { followAgent } from './follow-agent.ts'

/**
 * Stores a record. After a rejection the record is delivered again. A record that a killed server has stored may also
 * be delivered again, so store records with their sequence numbers.
 */
export type TakeAgentEvent<Item extends NumberedRecord = AgentEventRecord> = (record: Item) => Promise<void> | void

type NumberedRecord = { readonly sequence: number } | { readonly sequence: number; readonly lost: number }

/** One of the streams of numbered records of an agent. */
export interface RecordStream<Item extends NumberedRecord> {
  readonly follow: Endpoint<z.ZodType, z.ZodType, z.ZodType, z.ZodType<Item>>
  readonly acknowledge: Endpoint<z.ZodType, z.ZodType, typeof acknowledgeAgentEvents.body & {}>
  /** A longer event ends the stream. Correct agents send none. */
  readonly maxEventLength?: number
  /** The record after which reading starts. When absent, the last acknowledged one. */
  readonly after?: number | undefined
  /**
   * Whether records are acknowledged when `take` resolves. False when the caller acknowledges them later, after storing
   * them.
   */
  readonly acknowledgesTaken: boolean
}

const events = {
  follow: followAgentEvents,
  acknowledge: acknowledgeAgentEvents,
  acknowledgesTaken: true,
} as unknown as RecordStream<AgentEventRecord>

/**
 * Each event becomes a line of the log, which one session must not fill. An agent gives up long before ten crashes in a
 * row.
 */
const eventCost = 100
const shortestPauseMilliseconds = 50
const defaultLongestPauseMilliseconds = 5_000
interface AgentEventReaderOptions<Item extends NumberedRecord> {
  /** The cost of an event for the rate limit. */
  readonly minimumCost?: number
  readonly pace?: EventRateLimiter
  readonly stream?: RecordStream<Item>
  readonly longestPauseMilliseconds?: number
  /** Until it resolves, the agent cannot respond and receives no requests. */
  readonly begin?: Promise<void>
}

/** The time to receive what an agent wrote before it ended. */
const finalReadMilliseconds = 1_000

/**
 * Reads the events of one agent in order: each event, or the number of lost ones. It does not detect whether the
 * machine is alive: a stream that ends or fails is reopened after the last stored event.
 */
export class AgentEventReader<Item extends NumberedRecord = AgentEventRecord> {
  readonly #machine: ReachableMachine
  readonly #take: TakeAgentEvent<Item>
  readonly #stream: RecordStream<Item>
  readonly #abort = new AbortController()
  /** Aborts when no more streams are opened. */
  readonly #last = new AbortController()
  readonly #pace: EventRateLimiter
  readonly #longestPauseMilliseconds: number
  readonly #ended: Promise<void>
  #taken: number | undefined
  #toAcknowledge: number | undefined
  #acknowledged: number | undefined
  #isAcknowledging = false

  constructor(machine: ReachableMachine, take: TakeAgentEvent<Item>, options: AgentEventReaderOptions<Item> = {}) {
    const { minimumCost = eventCost, longestPauseMilliseconds = defaultLongestPauseMilliseconds } = options
    this.#pace = options.pace ?? new EventRateLimiter(minimumCost)
    this.#stream = options.stream ?? (events as unknown as RecordStream<Item>)
    this.#taken = this.#stream.after
    this.#longestPauseMilliseconds = longestPauseMilliseconds
    this.#machine = machine
    this.#take = take
    this.#ended = this.#readAgainAndAgain(options.begin)
  }

  /** Reads the remaining events of an agent that has ended. */
  async finish(): Promise<void> {
    this.#last.abort()
    await within(finalReadMilliseconds, this.#ended).catch(() => {}) // Its events arrive faster than they are stored.
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
      // AgentWatch finds out whether the agent is still there.
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
    const { follow, maxEventLength, acknowledgesTaken } = this.#stream
    const limit = maxEventLength !== undefined && { maxEventLength }
    for await (const record of followAgent(this.#machine, follow, { query, signal, pace: this.#pace, ...limit })) {
      this.#checkOrder(record)
      await this.#take(record)
      if (signal.aborted) return
      this.#taken = record.sequence
      if (acknowledgesTaken) this.acknowledge(record.sequence)
    }
  }

  #checkOrder(record: Item): void {
    if (this.#taken === undefined) return // The agent knows where the previous server stopped.
    const before = record.sequence - ('lost' in record ? record.lost : 1)
    if (before !== this.#taken) throw new Error(`its event ${record.sequence} follows ${this.#taken}`)
  }

  /** The agent may delete this record and those before. */
  acknowledge(sequence: number): void {
    this.#toAcknowledge = sequence
    void this.#acknowledge()
  }

  /** One acknowledgement at a time. Records that are stored meanwhile are acknowledged together. */
  async #acknowledge(): Promise<void> {
    if (this.#isAcknowledging) return
    this.#isAcknowledging = true
    try {
      while (!this.#abort.signal.aborted) {
        const sequence = this.#toAcknowledge
        if (sequence === undefined || sequence === this.#acknowledged) return
        await commandAgent(this.#machine, this.#stream.acknowledge, { sequence })
        this.#acknowledged = sequence
      }
    } catch {
      // The next event, or the next stream, also acknowledges it.
    } finally {
      this.#isAcknowledging = false
    }
  }
}
