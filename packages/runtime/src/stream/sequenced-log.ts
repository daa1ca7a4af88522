import { setTimeout as delay } from 'node:timers/promises'
import { Changes } from '../async/changes.ts'

/** An event, or how many events up to this sequence number are lost. */
export type SequencedRecord<Event> =
  | { readonly sequence: number; readonly event: Event }
  | { readonly sequence: number; readonly lost: number }

export interface SequencedLogLimits {
  readonly maxEvents: number
  /** Of the events as JSON, in characters. */
  readonly maxLength: number
  /** One that is longer is lost. */
  readonly maxEventLength: number
}

/** Of the records that are given out together, in characters; one event may be longer. */
const maxTogether = 256 * 1024

type KeptRecord =
  | { readonly sequence: number; readonly json: string }
  | { readonly sequence: number; readonly lost: number }

/**
 * Keeps events, numbered from 1, until their reader acknowledges them. When there is no room the oldest is dropped, and
 * whoever would have read it is told how many are lost.
 */
export class SequencedLog<Event extends object> {
  readonly #limits: SequencedLogLimits
  /** The events as JSON. */
  readonly #kept = new Map<number, string>()
  readonly #changes = new Changes()
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

  /** Counts an event that is lost before it could be kept, so that the reader is told. */
  skip(): void {
    this.#last += 1
    this.#changes.notify()
  }

  /** Forgets this event and those before. */
  acknowledge(sequence: number): void {
    this.#acknowledged = Math.max(this.#acknowledged, Math.min(sequence, this.#last))
    for (const kept of this.#kept.keys()) {
      if (kept > this.#acknowledged) return
      this.#drop(kept)
    }
  }

  /** What comes after the event, or after the last that was acknowledged, until the signal aborts. */
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
   * The same records as JSON, and together those that are there at the same time. After each time nothing is given out
   * for the pause: many events in a row are so a few writes.
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
        await delay(pauseMilliseconds, undefined, { signal }).catch(() => {})
      } else await this.#changes.next(signal)
    }
  }

  #recordAfter(position: number): KeptRecord | undefined {
    const sequence = position + 1
    const json = this.#kept.get(sequence)
    if (json !== undefined) return { sequence, json }
    if (position === this.#last) return undefined
    // After a loss the oldest of those that are kept follows, or one within them that was too long.
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
