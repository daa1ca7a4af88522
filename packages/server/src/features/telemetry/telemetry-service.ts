import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { TelemetryQuery, TimeOrAge } from '@berth/contract/telemetry/telemetry-endpoints.ts'
import type { TelemetryEnvelope } from '@berth/contract/telemetry/telemetry-event.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { SessionTelemetry } from './session-telemetry-service.ts'
import type { TelemetryStore } from './telemetry-store.ts'

const defaultSince: TimeOrAge = { ageMilliseconds: 5 * 60_000 }
/** The number of events that one filtered page scans. The next page continues after them. */
const scannedAtOnce = 2_000

interface TelemetryServiceOptions {
  readonly store: TelemetryStore
  readonly sessions: {
    find(
      projectId: ProjectId,
      idOrName: string,
      includeDeleted: boolean,
    ): Promise<{ readonly id: SessionId } | undefined>
  }
  readonly live: SessionTelemetry
  readonly retentionDays: number
  readonly clock: Clock
}

interface StreamOptions {
  readonly lastEventId: string | undefined
  readonly replay?: string | undefined
  /** When absent, every type. */
  readonly type?: readonly string[] | undefined
}

export interface TelemetryPage {
  readonly items: readonly TelemetryEnvelope[]
  readonly hasMore: boolean
  /** The start of the next page. 0 if there is none. */
  readonly nextOffset: number
}

/** Reads the telemetry of sessions: live and stored events. */
export class TelemetryService {
  readonly #options: TelemetryServiceOptions

  constructor(options: TelemetryServiceOptions) {
    this.#options = options
  }

  /** The events of an active session after a given one, from the oldest stored one, or new ones only. */
  async stream(
    id: SessionId,
    { lastEventId, replay, type }: StreamOptions,
    signal: AbortSignal,
  ): Promise<AsyncIterable<TelemetryEnvelope>> {
    const named = /^\d{1,15}$/.test(lastEventId ?? '') ? Number(lastEventId) : undefined
    const after = named ?? (replay === 'all' ? 0 : undefined)
    const events = await this.#options.live.follow(id, after, signal)
    if (!events) throw new BerthError('session_unreachable')
    return type ? ofTypes(events, new Set<string>(type)) : events
  }

  /** Stored events of an active or ended session. */
  async list(projectId: ProjectId, idOrName: string, query: TelemetryQuery): Promise<TelemetryPage> {
    const { store, sessions } = this.#options
    const session = await sessions.find(projectId, idOrName, true)
    if (!session) throw new BerthError('session_not_found', { session: idOrName })
    const { order, limit, offset, category, type } = query
    // The first page has no cursor, or the cursor 0.
    const from = offset || undefined
    const since = order === 'asc' && from === undefined ? this.#timeOf(query.since ?? defaultSince) : undefined
    const until = query.until && this.#timeOf(query.until)
    const isFiltered = category !== undefined || type !== undefined
    const scanned = isFiltered ? scannedAtOnce : limit

    const rows = await store.list(session.id, { order, from, since, until, limit: scanned + 1 })
    const items: TelemetryEnvelope[] = []
    let read = 0
    for (const row of rows.slice(0, scanned)) {
      read += 1
      const fits = (category?.includes(row.category as never) ?? true) && (type?.includes(row.type as never) ?? true)
      if (fits) items.push(row.envelope)
      if (items.length === limit) break
    }
    const last = rows[read - 1]?.envelope.seq ?? 0
    const hasMore = rows.length > read
    return { items, hasMore, nextOffset: hasMore ? (order === 'asc' ? last + 1 : last) : 0 }
  }

  /** Creates the partitions of the coming days, and removes events older than their retention. */
  async rotate(): Promise<void> {
    const { store, retentionDays, clock } = this.#options
    const now = clock.now()
    await store.rotate(now, new Date(now.getTime() - retentionDays * 86_400_000))
  }

  #timeOf(time: TimeOrAge): Date {
    return 'time' in time ? time.time : new Date(this.#options.clock.now().getTime() - time.ageMilliseconds)
  }
}

async function* ofTypes(
  events: AsyncIterable<TelemetryEnvelope>,
  types: ReadonlySet<string>,
): AsyncGenerator<TelemetryEnvelope> {
  for await (const envelope of events) if (types.has(envelope.event.type)) yield envelope
}
