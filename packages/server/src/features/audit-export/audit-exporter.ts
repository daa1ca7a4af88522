import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { auditLine } from '../audit/audit-record.ts'
import type { AuditService, NumberedEntry } from '../audit/audit-service.ts'
import type { ExportDestinationStore, StoredDestination } from './export-destination-store.ts'
import { locationOf, objectKey, windowMilliseconds, windowOf } from './export-objects.ts'
import { ExportFailure, type ExportTarget } from './export-target.ts'

const compress = promisify(gzip)
const entriesAtOnce = 10_000
const firstPauseMilliseconds = 60_000
const longestPauseMilliseconds = 60 * 60 * 1000

interface AuditExporterOptions {
  readonly store: ExportDestinationStore
  readonly audit: AuditService
  readonly target: ExportTarget
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Exports new entries of the audit log to their destinations. An entry waits for about ten minutes, so that there are
 * few objects. It is exported at least once, and its `event_id` identifies duplicates.
 */
export class AuditExporter {
  readonly #options: AuditExporterOptions

  constructor(options: AuditExporterOptions) {
    this.#options = options
  }

  /** Exports to all destinations that are due. A failed one does not delay the others. */
  async run(signal?: AbortSignal): Promise<void> {
    const { store, clock } = this.#options
    for (const destination of await store.listDue(clock.now())) {
      signal?.throwIfAborted()
      await this.#export(destination, signal)
    }
  }

  async #export(destination: StoredDestination, signal: AbortSignal | undefined): Promise<void> {
    const { store, audit, clock } = this.#options
    let exported = destination.exported_sequence ?? 0
    for (;;) {
      signal?.throwIfAborted()
      const entries = dueEntries(
        await audit.listAfter(destination.organization_id, exported, entriesAtOnce),
        clock.now(),
      )
      const last = entries.at(-1)
      if (!last) return
      try {
        await this.#write(destination, entries)
      } catch (error) {
        if (!(error instanceof ExportFailure)) throw error
        return this.#recordFailure(destination, error)
      }
      exported = last.sequence
      const columns = { exported_sequence: exported, last_success_at: clock.now(), ...noFailure }
      // A caller has changed the destination, so the rest belongs elsewhere or nowhere.
      if (!(await store.recordProgress(destination, columns))) return
    }
  }

  async #write(destination: StoredDestination, entries: readonly NumberedEntry[]): Promise<void> {
    const windows = Map.groupBy(entries, ({ entry }) => windowOf(entry.occurredAt).getTime())
    for (const [start, group] of windows) {
      const first = group[0] as NumberedEntry
      const content = await compress(group.map(({ entry }) => auditLine(entry)).join(''))
      const key = objectKey(destination, new Date(start), first.sequence)
      await this.#options.target.put(locationOf(destination), key, content)
    }
  }

  async #recordFailure(destination: StoredDestination, error: ExportFailure): Promise<void> {
    const { store, clock, logger } = this.#options
    const now = clock.now()
    const failures = destination.consecutive_failures + 1
    const pause = Math.min(firstPauseMilliseconds * 2 ** (failures - 1), longestPauseMilliseconds)
    logger.warn({ destinationId: destination.id, reason: error.message }, 'an export of the audit log failed')
    await store.recordProgress(destination, {
      consecutive_failures: failures,
      last_error: error.message,
      last_error_at: now,
      next_attempt_at: new Date(now.getTime() + pause),
    })
  }
}

const noFailure = { consecutive_failures: 0, last_error: null, last_error_at: null, next_attempt_at: null }

/**
 * Returns the entries before the first one whose window has not ended long enough ago. Later entries wait too, to keep
 * the order.
 */
function dueEntries(entries: readonly NumberedEntry[], now: Date): readonly NumberedEntry[] {
  const before = now.getTime() - windowMilliseconds
  const end = entries.findIndex(({ entry }) => entry.occurredAt.getTime() > before)
  return end === -1 ? entries : entries.slice(0, end)
}
