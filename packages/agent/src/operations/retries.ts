import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Operation } from '@berth/contract/agent/operation.ts'

/** Official clients send the number of earlier attempts with each call. */
const retryHeader = 'x-stainless-retry-count'

/** They wait half a second before the first retry, and double the delay up to this maximum. */
const maxPauseMilliseconds = 8_000
const firstPauseMilliseconds = 500
/** Allows for latency and a busy machine. */
const slackMilliseconds = 2_000

/** The number of earlier attempts; undefined for a client that does not retry by itself. */
export function retryCountOf(headers: IncomingHttpHeaders): number | undefined {
  const value = headers[retryHeader]
  return typeof value === 'string' && /^\d{1,4}$/.test(value) ? Number(value) : undefined
}

/** How long a client without a response may take to retry the call. */
export function graceAfter(retryCount: number | undefined): number {
  if (retryCount === undefined) return 0
  return Math.min(maxPauseMilliseconds, firstPauseMilliseconds * 2 ** retryCount) + slackMilliseconds
}

/**
 * A key shared by a call and its retry. Undefined for calls that may run twice: they only read, or write a whole file
 * at once.
 */
export function sameCallKey(operation: Operation, url: string, body: unknown): string | undefined {
  if (operation.method === 'GET' || operation.bodyType || operation.isPassThrough) return undefined
  const hash = createHash('sha256').update(`${operation.method} ${url}\n${JSON.stringify(body) ?? ''}`)
  return hash.digest('base64')
}
