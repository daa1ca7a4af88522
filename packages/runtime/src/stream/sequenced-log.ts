import { setTimeout as delay } from 'node:timers/promises'
import { Changes } from '../async/changes.ts'

/** An event, or the number of lost events up to and including this sequence number. */
export type SequencedRecord<Event> =
  | { readonly sequence: number; readonly event: Event }
  | { readonly sequence: number; readonly lost: number }

export interface SequencedLogLimits {
  readonly maxEvents: number
  /** The total length of the events as JSON, in characters. */
  readonly maxLength: number
  /** Longer events are lost. */
  readonly maxEventLength: number
}

/** The length of records that are returned together, in characters. A single longer event is returned alone. */
const maxTogether = 256 * 1024

type KeptRecord =
  | { readonly sequence: number; readonly json: string }
  | { readonly sequence: number; readonly lost: number }

/**
 * Keeps numbered events, from 1 on, until their reader acknowledges them. When the log is full, the oldest events are
 * dropped, and the reader receives the number of lost events.
 */
export class SequencedLog<Event extends object> {
  readonly #limits: SequencedLogLimits
  /** The events as JSON. */
  readonly #kept = new Map<number, string>()
  readonly #changes = new Changes()
  readonly #flushes = new Changes()
  #length = 0
  #last = 0
  #acknowledged = 0

  constructor(limits: SequencedLogLimits) {
    this.#limits = limits
  }

  append(event: Event): void {
    this.#last += 1
    const json = JSON.stringify(event)
    if (json.length <= this.#limits.maxEventLength) {
      this.#kept.set(this.#last, json)
      this.#length += json.length
      this.#makeRoom()
    }
    this.#changes.notify()
  }

  /** Counts an event that was lost before it could be stored, so that the reader learns of it. */
  skip(): void {
    this.#last += 1
    this.#changes.notify()
  }

  /** Ends the pauses of `followTogether`, so that it yields at once what is kept. */
  flush(): void {
    this.#flushes.notify()
  }

  /** Removes this event and those before. */
  acknowledge(sequence: number): void {
    this.#acknowledged = Math.max(this.#acknowledged, Math.min(sequence, this.#last))
    for (const kept of this.#kept.keys()) {
      if (kept > this.#acknowledged) return
      this.#drop(kept)
    }
  }

  /** Yields what follows the event, or the last acknowledged one, until the signal aborts. */
  async *follow(after: number | undefined, signal: AbortSignal): AsyncGenerator<SequencedRecord<Event>> {
    let position = Math.min(after ?? this.#acknowledged, this.#last)
    while (!signal.aborted) {
      const record = this.#recordAfter(position)
      if (record) {
        position = record.sequence
        yield 'lost' in record ? record : { sequence: position, event: JSON.parse(record.json) as Event }
      } else await this.#changes.next(signal)
    }
  }

  /**
   * Yields the same records as JSON, all available ones together. Pauses after each group, so that many events in a row
   * become few writes.
   */
  async *followTogether(
    after: number | undefined,
    signal: AbortSignal,
    pauseMilliseconds: number,
  ): AsyncGenerator<readonly string[]> {
    let position = Math.min(after ?? this.#acknowledged, this.#last)
    while (!signal.aborted) {
      const records: string[] = []
      for (let length = 0; length < maxTogether; ) {
        const record = this.#recordAfter(position)
        if (!record) break
        position = record.sequence
        const text = 'lost' in record ? JSON.stringify(record) : `{"sequence":${position},"event":${record.json}}`
        length += text.length
        records.push(text)
      }
      if (records.length > 0) {
        yield records
        await this.#pause(pauseMilliseconds, signal)
      } else await this.#changes.next(signal)
    }
  }

  async #pause(milliseconds: number, signal: AbortSignal): Promise<void> {
    const over = new AbortController()
    const either = AbortSignal.any([signal, over.signal])
    const passed = delay(milliseconds, undefined, { signal: either }).catch(() => {})
    await Promise.race([passed, this.#flushes.next(either)])
    over.abort()
  }

  #recordAfter(position: number): KeptRecord | undefined {
    const sequence = position + 1
    const json = this.#kept.get(sequence)
    if (json !== undefined) return { sequence, json }
    if (position === this.#last) return undefined
    // Lost events end before the oldest stored one, or, in the middle, before the next stored one after an event that
    // was too long.
    const [oldest = this.#last + 1] = this.#kept.keys()
    let next = Math.max(sequence, oldest)
    while (next <= this.#last && !this.#kept.has(next)) next += 1
    return { sequence: next - 1, lost: next - 1 - position }
  }

  #makeRoom(): void {
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= this.#limits.maxEvents && this.#length <= this.#limits.maxLength) return
      this.#drop(oldest)
    }
  }

  #drop(sequence: number): void {
    this.#length -= this.#kept.get(sequence)?.length ?? 0
    this.#kept.delete(sequence)
  }
}
