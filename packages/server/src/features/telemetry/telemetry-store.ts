import type { SessionId } from '@berth/contract/common/ids.ts'
import type { TelemetryEnvelope } from '@berth/contract/telemetry/telemetry-event.ts'
import { sql } from 'kysely'
import pg from 'pg'
import type { Database } from '../../database/database.ts'

export interface TelemetryRow {
  readonly session_id: SessionId
  readonly seq: number
  readonly recorded_at: Date
  readonly category: string
  readonly type: string
  /** The event as JSON. */
  readonly event: string
}

export interface EventRange {
  readonly order: 'asc' | 'desc'
  /** The first number, in the order of the page. */
  readonly from: number | undefined
  readonly since: Date | undefined
  readonly until: Date | undefined
  readonly limit: number
}

export interface StoredEvent {
  readonly envelope: TelemetryEnvelope
  readonly category: string
  readonly type: string
}

const dayMilliseconds = 86_400_000
const daysAhead = 2
/** SQLSTATE if no partition matches a row. */
const checkViolation = '23514'

export class TelemetryStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Inserts events. Existing ones, for example after a broken connection, stay unchanged. */
  async insert(rows: readonly TelemetryRow[]): Promise<void> {
    const first = rows[0]
    if (!first) return
    try {
      await this.#insert(rows)
    } catch (error) {
      if (!lacksPartition(error)) throw error
      for (const day of new Set(rows.map(({ recorded_at }) => startOfDay(recorded_at)))) await this.#addPartition(day)
      await this.#insert(rows)
    }
  }

  async #insert(rows: readonly TelemetryRow[]): Promise<void> {
    const column = <Name extends keyof TelemetryRow>(name: Name) => rows.map((row) => row[name])
    await sql`
      insert into telemetry_events (session_id, seq, recorded_at, category, type, event)
      select * from unnest(${column('session_id')}::text[], ${column('seq')}::bigint[],
        ${column('recorded_at')}::timestamptz[], ${column('category')}::text[], ${column('type')}::text[],
        ${column('event')}::text[])
      on conflict do nothing`.execute(this.#database)
  }

  /** The number of the last event. 0 if there is none. */
  async lastSequence(sessionId: SessionId): Promise<number> {
    const { rows } = await sql<{ last: number | null }>`
      select max(seq) as last from telemetry_events where session_id = ${sessionId}`.execute(this.#database)
    return rows[0]?.last ?? 0
  }

  /** Events between two numbers, both exclusive, oldest first. */
  async between(sessionId: SessionId, after: number, before: number, limit: number): Promise<TelemetryEnvelope[]> {
    const { rows } = await sql<{ seq: number; event: string }>`
      select seq, event from telemetry_events
      where session_id = ${sessionId} and seq > ${after} and seq < ${before}
      order by seq limit ${limit}`.execute(this.#database)
    return rows.map(({ seq, event }) => ({ seq, event: JSON.parse(event) }))
  }

  async list(sessionId: SessionId, { order, from, since, until, limit }: EventRange): Promise<readonly StoredEvent[]> {
    const isNewestFirst = order === 'desc'
    const start = from === undefined ? sql`true` : isNewestFirst ? sql`seq < ${from}` : sql`seq >= ${from}`
    const { rows } = await sql<{ seq: number; event: string; category: string; type: string }>`
      select seq, event, category, type from telemetry_events
      where session_id = ${sessionId} and ${start}
        and ${since ? sql`recorded_at >= ${since}` : sql`true`}
        and ${until ? sql`recorded_at < ${until}` : sql`true`}
      order by seq ${isNewestFirst ? sql`desc` : sql`asc`} limit ${limit}`.execute(this.#database)
    return rows.map(({ seq, event, category, type }) => ({
      envelope: { seq, event: JSON.parse(event) },
      category,
      type,
    }))
  }

  /** Creates the partitions of the coming days, and removes those of days that ended before. */
  async rotate(now: Date, keptSince: Date): Promise<void> {
    for (let day = 0; day <= daysAhead; day++) {
      await this.#addPartition(startOfDay(new Date(now.getTime() + day * dayMilliseconds)))
    }
    const { rows } = await sql<{ name: string }>`
      select inhrelid::regclass::text as name from pg_inherits
      where inhparent = 'telemetry_events'::regclass`.execute(this.#database)
    for (const { name } of rows) {
      const ended = dayOf(name) + dayMilliseconds
      if (ended <= keptSince.getTime()) await sql`drop table if exists ${sql.table(name)}`.execute(this.#database)
    }
  }

  /** One at a time on all servers: two that create the same table together would conflict. */
  async #addPartition(day: number): Promise<void> {
    const [from, to] = [new Date(day).toISOString(), new Date(day + dayMilliseconds).toISOString()]
    const name = `telemetry_events_${from.slice(0, 10).replaceAll('-', '')}`
    await this.#database.transaction().execute(async (transaction) => {
      await sql`select pg_advisory_xact_lock(hashtext('telemetry partitions'))`.execute(transaction)
      await sql`
        create table if not exists ${sql.table(name)} partition of telemetry_events
        for values from (${sql.lit(from)}) to (${sql.lit(to)})`.execute(transaction)
    })
  }
}

function lacksPartition(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === checkViolation
}

function startOfDay(time: Date): number {
  return Math.floor(time.getTime() / dayMilliseconds) * dayMilliseconds
}

/** Parses the start of the day from the name of a partition. */
function dayOf(name: string): number {
  const [, year, month, day] = /_(\d{4})(\d{2})(\d{2})$/.exec(name) ?? []
  return Date.UTC(Number(year), Number(month) - 1, Number(day))
}
