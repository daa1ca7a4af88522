import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Operation } from '@berth/contract/agent/operation.ts'

/** Official clients say with each call how often they have sent it before. */
const retryHeader = 'x-stainless-retry-count'

/** They wait half a second before the second try, then twice as long each time, up to this. */
const maxPauseMilliseconds = 8_000
const firstPauseMilliseconds = 500
/** For the way, and for a machine that is busy. */
const slackMilliseconds = 2_000

/** How often the call was sent before; undefined for a client that does not send again by itself. */
export function retryCountOf(headers: IncomingHttpHeaders): number | undefined {
  const value = headers[retryHeader]
  return typeof value === 'string' && /^\d{1,4}$/.test(value) ? Number(value) : undefined
}

/** How long a client that was not answered may take to send the call again. */
export function graceAfter(retryCount: number | undefined): number {
  if (retryCount === undefined) return 0
  return Math.min(maxPauseMilliseconds, firstPauseMilliseconds * 2 ** retryCount) + slackMilliseconds
}

/**
 * What two calls have in common of which one is the other sent again. Undefined for what may be done twice: it reads, or
 * writes a whole file in one piece.
 */
export function sameCallKey(operation: Operation, url: string, body: unknown): string | undefined {
  if (operation.method === 'GET' || operation.bodyType || operation.isPassThrough) return undefined
  const hash = createHash('sha256').update(`${operation.method} ${url}\n${JSON.stringify(body) ?? ''}`)
  return hash.digest('base64')
}
