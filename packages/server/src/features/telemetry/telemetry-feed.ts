import type { TelemetryEnvelope } from '@berth/contract/telemetry/telemetry-event.ts'
import { Changes } from '@berth/runtime/async/changes.ts'
import type { TelemetryRow } from './telemetry-store.ts'

/** How many stored events are kept for readers that are up to date. */
const maxKept = 1_024
const maxKeptLength = 1024 * 1024
/** How many events may wait to be stored. Further ones stay in the machine. */
const maxUnstored = 2_000
const maxUnstoredLength = 2 * 1024 * 1024
const rowsAtOnce = 500
const replayedAtOnce = 200

interface Entry {
  readonly envelope: TelemetryEnvelope
  readonly row: TelemetryRow
}

/** Reads stored events between two numbers, both exclusive. */
export type ReadStored = (after: number, before: number, limit: number) => Promise<readonly TelemetryEnvelope[]>

/**
 * The newest events of a session. Every event stays here until it is stored, and for a while after. A reader that needs
 * older ones gets them from the database, so a slow reader uses no memory and misses nothing.
 */
export class TelemetryFeed {
  readonly #readStored: ReadStored
  readonly #changes = new Changes()
  #entries: Entry[] = []
  /** The number of stored entries, which come first. */
  #storedCount = 0
  #length = 0
  #unstoredLength = 0
  #last: number
  #hasEnded = false

  constructor(last: number, readStored: ReadStored) {
    this.#last = last
    this.#readStored = readStored
  }

  get hasRoom(): boolean {
    const unstored = this.#entries.length - this.#storedCount
    return unstored < maxUnstored && this.#unstoredLength < maxUnstoredLength
  }

  append(envelope: TelemetryEnvelope, row: TelemetryRow): void {
    this.#entries.push({ envelope, row })
    this.#length += row.event.length
    this.#unstoredLength += row.event.length
    this.#last = envelope.seq
    this.#changes.notify()
  }

  /** The oldest events that are not stored. */
  unstored(): readonly TelemetryRow[] {
    return this.#entries.slice(this.#storedCount, this.#storedCount + rowsAtOnce).map(({ row }) => row)
  }

  /** Marks the first of them as stored. */
  markStored(rows: readonly TelemetryRow[]): void {
    this.#storedCount += rows.length
    for (const { event } of rows) this.#unstoredLength -= event.length
    let dropped = 0
    while (
      dropped < this.#storedCount &&
      (this.#entries.length - dropped > maxKept || this.#length > maxKeptLength + this.#unstoredLength)
    ) {
      this.#length -= this.#entries[dropped]?.row.event.length ?? 0
      dropped += 1
    }
    this.#entries = this.#entries.slice(dropped)
    this.#storedCount -= dropped
    this.#changes.notify()
  }

  /** Resolves at the next event, or when some are stored. */
  change(signal: AbortSignal): Promise<void> {
    return this.#changes.next(signal)
  }

  end(): void {
    this.#hasEnded = true
    this.#changes.notify()
  }

  /** Yields the events after this one, or new ones only. Ends with the session. */
  follow(after: number | undefined, signal: AbortSignal): AsyncGenerator<TelemetryEnvelope> {
    // Determined now, not when the reader takes its first event.
    return this.#follow(Math.min(after ?? this.#last, this.#last), signal)
  }

  async *#follow(start: number, signal: AbortSignal): AsyncGenerator<TelemetryEnvelope> {
    let position = start
    while (!signal.aborted) {
      const oldest = this.#entries[0]?.envelope.seq ?? this.#last + 1
      if (position < oldest - 1) {
        const stored = await this.#readStored(position, oldest, replayedAtOnce)
        yield* stored
        // Events before the oldest one here that are not stored were lost.
        position = stored.length < replayedAtOnce ? oldest - 1 : (stored.at(-1)?.seq ?? position)
      } else if (position < this.#last) {
        const next = this.#entryAfter(position)
        if (!next) continue // It was dropped meanwhile, so it is stored.
        position = next.envelope.seq
        yield next.envelope
      } else if (this.#hasEnded) return
      else await this.#changes.next(signal)
    }
  }

  #entryAfter(position: number): Entry | undefined {
    let [low, high] = [0, this.#entries.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#entries[middle]?.envelope.seq ?? 0) > position) high = middle
      else low = middle + 1
    }
    return this.#entries[low]
  }
}
