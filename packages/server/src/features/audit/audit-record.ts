import type { AuditLogEntry } from '@berth/contract/audit/audit-endpoints.ts'
import type { AuditEntryId, OrganizationId } from '@berth/contract/common/ids.ts'

/** A request that changed something or tried to. */
export interface AuditEntry {
  readonly eventId: AuditEntryId
  readonly organizationId: OrganizationId
  readonly occurredAt: Date
  readonly service: string
  readonly authStrategy: string
  readonly userId: string
  readonly email: string
  readonly status: number
  readonly method: string
  readonly path: string
  readonly route: string
  readonly domain: string
  readonly durationMilliseconds: number
  readonly clientIp: string
  readonly userAgent: string
}

/** The form that callers see. Exports use the same order of fields. */
export function auditRecord(entry: AuditEntry): AuditLogEntry {
  return {
    timestamp: entry.occurredAt.toISOString(),
    auth_strategy: entry.authStrategy,
    user_id: entry.userId,
    email: entry.email,
    status: entry.status,
    method: entry.method,
    path: entry.path,
    route: entry.route,
    domain: entry.domain,
    duration_ms: entry.durationMilliseconds,
    client_ip: entry.clientIp,
    user_agent: entry.userAgent,
  }
}

/** A line of an export. */
export function auditLine(entry: AuditEntry): string {
  return `${JSON.stringify({ event_id: entry.eventId, ...auditRecord(entry) })}\n`
}
