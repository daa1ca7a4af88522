import { createHash } from 'node:crypto'
import type { AuditQuery } from '@berth/contract/audit/audit-endpoints.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { z } from 'zod'
import type { AuditPosition } from './audit-store.ts'

/** The position of a reader: after an entry, in the log as it was when reading began. */
export interface AuditCursor {
  readonly untilSequence: number
  readonly after: AuditPosition
}

const Parts = z.tuple([z.int().min(0), z.int().min(0).max(8_640_000_000_000_000), z.string().max(64), z.string()])

/** Encodes the cursor. It is valid only for the same filter. */
export function writeCursor({ untilSequence, after }: AuditCursor, filter: AuditQuery): string {
  const parts: z.infer<typeof Parts> = [untilSequence, after.occurredAt.getTime(), after.eventId, hashOf(filter)]
  return Buffer.from(JSON.stringify(parts)).toString('base64url')
}

export function readCursor(text: string, filter: AuditQuery, field: string): AuditCursor {
  const refuse = (rule: string) => new BerthError('invalid_input', { reason: `${field}: ${rule}.` })
  const parts = Parts.safeParse(parsed(text))
  if (!parts.success) throw refuse('must be a cursor from a response of this operation')
  const [untilSequence, time, eventId, hash] = parts.data
  if (hash !== hashOf(filter)) throw refuse('belongs to another start, end or filter')
  return { untilSequence, after: { occurredAt: new Date(time), eventId } }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return undefined
  }
}

function hashOf(filter: AuditQuery): string {
  const { start, end, auth_strategy, service, method, exclude_method = [], search, search_user_id = [] } = filter
  const facts = [start, end, auth_strategy, service, method, exclude_method, search, search_user_id]
  return createHash('sha256').update(JSON.stringify(facts)).digest('base64url').slice(0, 16)
}
