import type { OtlpDestinationId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { OtlpDestinationStore } from './otlp-destination-store.ts'

/** The shortest time between two records of success: batches are sent twice a second. */
const successPauseMilliseconds = 10_000
const maxErrorLength = 500

interface OtlpDeliveryHealthOptions {
  readonly store: OtlpDestinationStore
  readonly clock: Clock
  readonly logger: Logger
}

/** Records successes and failures of exports, for the owner of the destination. */
export class OtlpDeliveryHealth {
  readonly #options: OtlpDeliveryHealthOptions
  /** When a success was last recorded. Absent after a failure, so that the next success is recorded immediately. */
  readonly #successes = new Map<OtlpDestinationId, number>()

  constructor(options: OtlpDeliveryHealthOptions) {
    this.#options = options
  }

  succeeded(id: OtlpDestinationId): void {
    const now = performance.now()
    if (now - (this.#successes.get(id) ?? -Infinity) < successPauseMilliseconds) return
    this.#successes.set(id, now)
    this.#write(id, this.#options.store.recordExport(id, this.#options.clock.now()))
  }

  failed(id: OtlpDestinationId, error: Error): void {
    this.#successes.delete(id)
    const message = error.message.replaceAll('\0', '').slice(0, maxErrorLength)
    this.#write(id, this.#options.store.recordFailure(id, message, this.#options.clock.now()))
  }

  #write(id: OtlpDestinationId, written: Promise<void>): void {
    written.catch((error: Error) => {
      // The next export records it again.
      this.#successes.delete(id)
      this.#options.logger.warn({ destinationId: id, reason: error.message }, 'delivery health cannot be written')
    })
  }
}
