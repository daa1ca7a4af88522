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
 * Takes a record for good; when it rejects, the record comes again. After a server was killed a record may come that
 * an earlier one has taken: who stores records stores their sequence numbers with them.
 */
export type TakeAgentEvent<Told extends NumberedRecord = AgentEventRecord> = (record: Told) => Promise<void> | void

type NumberedRecord = { readonly sequence: number } | { readonly sequence: number; readonly lost: number }

/** One of the streams of numbered records that an agent has. */
export interface RecordStream<Told extends NumberedRecord> {
  readonly follow: Endpoint<z.ZodType, z.ZodType, z.ZodType, z.ZodType<Told>>
  readonly acknowledge: Endpoint<z.ZodType, z.ZodType, typeof acknowledgeAgentEvents.body & {}>
  /** A longer event ends the stream: no correct agent sends one. */
  readonly maxEventLength?: number
  /** The record after which reading begins; absent: the last one that was acknowledged. */
  readonly after?: number | undefined
  /** False: whoever takes the records acknowledges them later, when they are stored. */
  readonly acknowledgesTaken: boolean
}

const events = {
  follow: followAgentEvents,
  acknowledge: acknowledgeAgentEvents,
  acknowledgesTaken: true,
} as unknown as RecordStream<AgentEventRecord>

/** Each event is a line in the log, which must not be filled by one session; an agent gives up long before ten in a row. */
const eventPrice = 100
const shortestPauseMilliseconds = 50
const defaultLongestPauseMilliseconds = 5_000
interface AgentEventReaderOptions<Told extends NumberedRecord> {
  /** What an event costs of the pace. */
  readonly price?: number
  readonly pace?: EventRateLimiter
  readonly stream?: RecordStream<Told>
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
export class AgentEventReader<Told extends NumberedRecord = AgentEventRecord> {
  readonly #machine: ReachableMachine
  readonly #take: TakeAgentEvent<Told>
  readonly #stream: RecordStream<Told>
  readonly #abort = new AbortController()
  /** Aborts when no stream is opened any more. */
  readonly #last = new AbortController()
  readonly #pace: EventRateLimiter
  readonly #longestPauseMilliseconds: number
  readonly #ended: Promise<void>
  #taken: number | undefined
  #toAcknowledge: number | undefined
  #acknowledged: number | undefined
  #isAcknowledging = false

  constructor(machine: ReachableMachine, take: TakeAgentEvent<Told>, options: AgentEventReaderOptions<Told> = {}) {
    const { price = eventPrice, longestPauseMilliseconds = defaultLongestPauseMilliseconds } = options
    this.#pace = options.pace ?? new EventRateLimiter(price)
    this.#stream = options.stream ?? (events as unknown as RecordStream<Told>)
    this.#taken = this.#stream.after
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

  #checkOrder(record: Told): void {
    if (this.#taken === undefined) return // Where an earlier server has stopped, the agent knows.
    const before = record.sequence - ('lost' in record ? record.lost : 1)
    if (before !== this.#taken) throw new Error(`its event ${record.sequence} follows ${this.#taken}`)
  }

  /** The agent may forget this record and those before. */
  acknowledge(sequence: number): void {
    this.#toAcknowledge = sequence
    void this.#acknowledge()
  }

  /** One at a time: what is taken meanwhile is acknowledged together. */
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
      // The next event, or the next stream, tells the agent as well.
    } finally {
      this.#isAcknowledging = false
    }
  }
}
