import type { TelemetryRow, TelemetryStore } from './telemetry-store.ts'

const maxRows = 2_000
const pauseMilliseconds = 100

interface Waiting {
  readonly rows: readonly TelemetryRow[]
  readonly written: PromiseWithResolvers<void>
}

/** Writes the events of all sessions in batches: one statement at a time, however many sessions have events. */
export class TelemetryWriter {
  readonly #store: Pick<TelemetryStore, 'insert'>
  readonly #waiting: Waiting[] = []
  #isWriting = false

  constructor(store: Pick<TelemetryStore, 'insert'>) {
    this.#store = store
  }

  /** Resolves when the rows are durable. After a rejection the caller must retry: nothing is kept here. */
  write(rows: readonly TelemetryRow[]): Promise<void> {
    const written = Promise.withResolvers<void>()
    this.#waiting.push({ rows, written })
    if (!this.#isWriting) void this.#run()
    return written.promise
  }

  async #run(): Promise<void> {
    this.#isWriting = true
    while (this.#waiting.length > 0) {
      // A short delay lets more events share the statement.
      if (!this.#isFull()) await new Promise((resolve) => setTimeout(resolve, pauseMilliseconds))
      const batch = this.#nextBatch()
      try {
        await this.#store.insert(batch.flatMap(({ rows }) => rows))
        for (const { written } of batch) written.resolve()
      } catch (error) {
        for (const { written } of batch) written.reject(error)
      }
    }
    this.#isWriting = false
  }

  #isFull(): boolean {
    return this.#waiting.reduce((sum, { rows }) => sum + rows.length, 0) >= maxRows
  }

  #nextBatch(): readonly Waiting[] {
    let rows = 0
    const fitting = this.#waiting.findIndex((waiting) => {
      rows += waiting.rows.length
      return rows > maxRows
    })
    return this.#waiting.splice(0, fitting === -1 ? this.#waiting.length : Math.max(1, fitting))
  }
}
