import type { AuditQuery } from '@berth/contract/audit/audit-endpoints.ts'
import type { AuditEntryId, OrganizationId } from '@berth/contract/common/ids.ts'
import { sql } from 'kysely'
import type { Database } from '../../database/database.ts'
import type { AuditEntry } from './audit-record.ts'

/** An arbitrary number that no other advisory lock uses. */
const writeLock = 7_306
const rowsPerInsert = 500

/** The end of a page. Entries are identified by time and id. */
export interface AuditPosition {
  readonly occurredAt: Date
  readonly eventId: string
}

export interface AuditSlice {
  /** Entries that became visible later are excluded. */
  readonly untilSequence: number
  readonly order: 'asc' | 'desc'
  /** Starts after this entry, in the requested order. */
  readonly after: AuditPosition | undefined
  readonly limit: number
}

/** An entry with its position in the order in which entries became visible. */
export interface NumberedEntry {
  readonly sequence: number
  readonly entry: AuditEntry
}

export class AuditStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /**
   * Inserts each entry once, however often it is passed. Inserts are serialized, so that the sequence follows the order
   * of commits.
   */
  async insert(entries: readonly AuditEntry[]): Promise<void> {
    for (let start = 0; start < entries.length; start += rowsPerInsert) {
      const rows = entries.slice(start, start + rowsPerInsert).map(rowOf)
      await this.#database.transaction().execute(async (database) => {
        await sql`select pg_advisory_xact_lock(${writeLock})`.execute(database)
        await database
          .insertInto('audit_entries')
          .values(rows)
          .onConflict((conflict) => conflict.column('event_id').doNothing())
          .execute()
      })
    }
  }

  /** The newest visible sequence. No smaller one will appear later. */
  async lastSequence(): Promise<number> {
    const { last } = await this.#database
      .selectFrom('audit_entries')
      .select(({ fn }) => fn.max('sequence').as('last'))
      .executeTakeFirstOrThrow()
    return Number(last ?? 0)
  }

  async list(organizationId: OrganizationId, filter: AuditQuery, slice: AuditSlice): Promise<readonly AuditEntry[]> {
    let query = this.#database
      .selectFrom('audit_entries')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('occurred_at', '>=', filter.start)
      .where('occurred_at', '<', filter.end)
      .where('sequence', '<=', slice.untilSequence)
    if (filter.auth_strategy !== undefined) query = query.where('auth_strategy', '=', filter.auth_strategy)
    if (filter.service !== undefined) query = query.where('service', '=', filter.service)
    if (filter.method !== undefined) query = query.where('method', '=', filter.method.toUpperCase())
    if (filter.exclude_method?.length) {
      const methods = filter.exclude_method.map((method) => method.toUpperCase())
      query = query.where('method', 'not in', methods)
    }
    if (filter.search !== undefined || filter.search_user_id?.length) query = query.where(found(filter))
    if (slice.after) {
      const { occurredAt, eventId } = slice.after
      const beyond = slice.order === 'asc' ? sql`>` : sql`<`
      query = query.where(sql<boolean>`(occurred_at, event_id) ${beyond} (${occurredAt}, ${eventId})`)
    }
    const rows = await query
      .orderBy('occurred_at', slice.order)
      .orderBy('event_id', slice.order)
      .limit(slice.limit)
      .execute()
    return rows.map(entryOf)
  }

  /** In the order in which they became visible. */
  async listAfter(organizationId: OrganizationId, sequence: number, limit: number): Promise<readonly NumberedEntry[]> {
    const rows = await this.#database
      .selectFrom('audit_entries')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('sequence', '>', sequence)
      .orderBy('sequence')
      .limit(limit)
      .execute()
    return rows.map((row) => ({ sequence: row.sequence, entry: entryOf(row) }))
  }

  /** Removes older entries and returns their number. */
  async removeBefore(time: Date): Promise<number> {
    const { numDeletedRows } = await this.#database
      .deleteFrom('audit_entries')
      .where('occurred_at', '<', time)
      .executeTakeFirstOrThrow()
    return Number(numDeletedRows)
  }
}

function found({ search, search_user_id: userIds = [] }: AuditQuery) {
  const text = search?.toLowerCase() ?? null
  const users = userIds.length > 0 ? sql`user_id in (${sql.join(userIds)})` : sql`false`
  if (text === null) return sql<boolean>`${users}`
  return sql<boolean>`(${users} or strpos(lower(path), ${text}) > 0 or strpos(lower(user_id), ${text}) > 0
    or strpos(lower(email), ${text}) > 0 or strpos(client_ip, ${text}) > 0 or status::text = ${text})`
}

function rowOf(entry: AuditEntry) {
  const { eventId, organizationId, occurredAt, authStrategy, userId, durationMilliseconds, clientIp, userAgent } = entry
  const { service, email, status, method, path, route, domain } = entry
  return {
    event_id: eventId,
    organization_id: organizationId,
    occurred_at: occurredAt,
    auth_strategy: authStrategy,
    user_id: userId,
    duration_ms: durationMilliseconds,
    client_ip: clientIp,
    user_agent: userAgent,
    ...{ service, email, status, method, path, route, domain },
  }
}

type Row = Omit<ReturnType<typeof rowOf>, 'event_id'> & { readonly event_id: AuditEntryId }

function entryOf(row: Row): AuditEntry {
  const { service, email, status, method, path, route, domain } = row
  return {
    eventId: row.event_id,
    organizationId: row.organization_id,
    occurredAt: row.occurred_at,
    authStrategy: row.auth_strategy,
    userId: row.user_id,
    durationMilliseconds: row.duration_ms,
    clientIp: row.client_ip,
    userAgent: row.user_agent,
    ...{ service, email, status, method, path, route, domain },
  }
}
