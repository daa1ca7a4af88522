import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { AuditQuery } from '@berth/contract/audit/audit-endpoints.ts'
import { newId, type OrganizationId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { OrganizationCaller } from '../../access/caller.ts'
import { requireOrganizationKey } from '../../access/require-organization-key.ts'
import { readCursor, writeCursor } from './audit-cursor.ts'
import type { AuditJournal } from './audit-journal.ts'
import { type AuditEntry, auditLine } from './audit-record.ts'
import type { AuditStore, NumberedEntry } from './audit-store.ts'

const compress = promisify(gzip)
const dayMilliseconds = 24 * 60 * 60 * 1000
const maxWindowMilliseconds = 30 * dayMilliseconds
/** Entries of this period are written to the database together. */
const gatherMilliseconds = 250
const retryMilliseconds = 2_000

export type { NumberedEntry } from './audit-store.ts'

interface AuditServiceOptions {
  readonly store: AuditStore
  readonly journal: AuditJournal
  readonly retentionDays: number
  readonly clock: Clock
  readonly logger: Logger
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[]
  readonly next: string | undefined
}

export interface AuditChunk {
  readonly content: Buffer
  readonly rows: number
  readonly sha256: string
  readonly next: string | undefined
}

interface ReadOptions {
  readonly cursor: string | undefined
  /** The name of the cursor in the caller's request. */
  readonly cursorField: string
  readonly limit: number
  readonly order: 'asc' | 'desc'
}

/** Stores the audit log and lets keys of the organization read it. */
export class AuditService {
  readonly #store: AuditStore
  readonly #journal: AuditJournal
  readonly #retentionDays: number
  readonly #clock: Clock
  readonly #logger: Logger
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor({ store, journal, retentionDays, clock, logger }: AuditServiceOptions) {
    this.#store = store
    this.#journal = journal
    this.#retentionDays = retentionDays
    this.#clock = clock
    this.#logger = logger
  }

  /** Synchronous: when it returns, the entry survives the end of this process. */
  record(entry: Omit<AuditEntry, 'eventId' | 'occurredAt'>): void {
    const now = this.#clock.now()
    this.#journal.append({ eventId: newId('audit-entry', now), occurredAt: now, ...entry })
    this.#flushAfter(gatherMilliseconds)
  }

  /**
   * Moves entries of the journal to the database, including those of earlier servers. Concurrent calls run in sequence.
   */
  flush(): Promise<void> {
    const flushed = this.#flushing.then(() => this.#flush())
    this.#flushing = flushed.catch(() => {})
    return flushed
  }

  async close(): Promise<void> {
    await this.flush().catch((error: Error) =>
      this.#logger.warn({ reason: error.message }, 'the next start writes the rest of the audit log'),
    )
    await this.stop()
  }

  /** Leaves the rest in the journal for the next start. */
  async stop(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#flushing
    this.#journal.close()
  }

  async list(
    caller: OrganizationCaller,
    filter: AuditQuery,
    { limit, pageToken }: { readonly limit: number; readonly pageToken: string | undefined },
  ): Promise<AuditPage> {
    return this.#read(caller, filter, { cursor: pageToken, cursorField: 'page_token', limit, order: 'desc' })
  }

  async exportChunk(
    caller: OrganizationCaller,
    filter: AuditQuery,
    { cursor, limit, format }: { readonly cursor: string | undefined; readonly limit: number; readonly format: string },
  ): Promise<AuditChunk> {
    const { entries, next } = await this.#read(caller, filter, { cursor, cursorField: 'cursor', limit, order: 'asc' })
    const lines = Buffer.from(entries.map(auditLine).join(''))
    const content = format === 'jsonl' ? lines : await compress(lines)
    const sha256 = createHash('sha256').update(content).digest('hex')
    return { content, rows: entries.length, sha256, next }
  }

  /** The current end of the log. */
  async lastSequence(): Promise<number> {
    await this.flush()
    return this.#store.lastSequence()
  }

  async listAfter(organizationId: OrganizationId, sequence: number, limit: number): Promise<readonly NumberedEntry[]> {
    return this.#store.listAfter(organizationId, sequence, limit)
  }

  async removeOld(): Promise<void> {
    const removed = await this.#store.removeBefore(
      new Date(this.#clock.now().getTime() - this.#retentionDays * dayMilliseconds),
    )
    if (removed > 0) this.#logger.info({ entries: removed }, 'removed old entries of the audit log')
  }

  async #read(caller: OrganizationCaller, filter: AuditQuery, options: ReadOptions): Promise<AuditPage> {
    requireOrganizationKey(caller)
    checkWindow(filter)
    const { limit, order } = options
    const known = options.cursor === undefined ? undefined : readCursor(options.cursor, filter, options.cursorField)
    if (!known) await this.flush()
    const untilSequence = known?.untilSequence ?? (await this.#store.lastSequence())
    const slice = { untilSequence, order, after: known?.after, limit: limit + 1 }
    const rows = await this.#store.list(caller.organizationId, filter, slice)
    const entries = rows.slice(0, limit)
    const last = entries.at(-1)
    const next = rows.length > limit && last ? writeCursor({ untilSequence, after: last }, filter) : undefined
    return { entries, next }
  }

  async #flush(): Promise<void> {
    for await (const { entries, remove } of this.#journal.parts()) {
      await this.#store.insert(entries)
      await remove()
    }
  }

  #flushAfter(milliseconds: number): void {
    if (this.#timer || this.#isClosed) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.flush().catch((error: Error) => {
        this.#logger.warn({ reason: error.message }, 'could not write the audit log to the database; retrying')
        this.#flushAfter(retryMilliseconds)
      })
    }, milliseconds).unref()
  }
}

function checkWindow({ start, end }: AuditQuery): void {
  const refuse = (rule: string) => new BerthError('invalid_input', { reason: `end: ${rule}.` })
  if (end <= start) throw refuse('must be after the start')
  if (end.getTime() - start.getTime() > maxWindowMilliseconds) throw refuse('must be at most 30 days after the start')
}
