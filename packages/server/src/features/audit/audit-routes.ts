import { Readable } from 'node:stream'
import { exportAuditLogChunk, listAuditLogs } from '@berth/contract/audit/audit-endpoints.ts'
import type { MountForOrganizations } from '../../access/mount-for-callers.ts'
import { auditRecord } from './audit-record.ts'
import type { AuditService } from './audit-service.ts'

export function mountAuditRoutes(mount: MountForOrganizations, { audit }: { readonly audit: AuditService }): void {
  mount(listAuditLogs, async ({ caller, query, setHeaders }) => {
    const { limit, page_token: pageToken, ...filter } = query
    const { entries, next } = await audit.list(caller, filter, { limit, pageToken })
    setHeaders({
      'x-limit': String(limit),
      'x-has-more': String(next !== undefined),
      ...(next !== undefined && { 'x-next-page-token': next }),
    })
    return entries.map(auditRecord)
  })

  mount(exportAuditLogChunk, async ({ caller, query, setHeaders }) => {
    const { cursor, limit, format, ...filter } = query
    const { content, rows, sha256, next } = await audit.exportChunk(caller, filter, { cursor, limit, format })
    setHeaders({
      'x-has-more': String(next !== undefined),
      ...(next !== undefined && { 'x-next-cursor': next }),
      'x-row-count': String(rows),
      'x-content-sha256': sha256,
    })
    return { content: Readable.from([content], { objectMode: false }), sizeBytes: content.length }
  })
}
