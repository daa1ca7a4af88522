import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { Operation } from '@berth/contract/agent/operation.ts'
import { isStream } from '@berth/contract/stream.ts'
import { eventStreamHeaders } from '@berth/runtime/http/event-stream.ts'
import { foreignContentHeaders } from '@berth/runtime/http/mount.ts'
import { passedResponseHeaders } from '../pass-through-headers.ts'

/**
 * The headers of an agent's response that describe its content. A compromised agent can neither set cookies nor remove
 * protections.
 */
const contentHeaders = [
  ...['content-type', 'content-length', 'content-range', 'content-disposition', 'accept-ranges'],
  ...['last-modified', 'etag', 'cache-control', 'retry-after', 'x-should-retry', 'x-request-id'],
]

export interface ResponseHead {
  readonly status: number
  readonly headers: OutgoingHttpHeaders
}

/** Builds the response headers for the caller, or returns undefined when the agent's are not permitted. */
export function responseHeadFor(
  operation: Operation,
  { statusCode: status = 0, headers }: IncomingMessage,
  caller: IncomingHttpHeaders,
): ResponseHead | undefined {
  if (status < 200 || status > 599) return undefined
  if (operation.isPassThrough) return { status, headers: passThroughHeaders(headers, caller) }
  return {
    status,
    headers: {
      ...pick(headers, contentHeaders),
      ...(isStream(operation) && status < 300 && eventStreamHeaders),
      ...foreignContentHeaders,
    },
  }
}

/**
 * The headers of another server. Its errors are not berth's, and a client that retries automatically would send the
 * request twice.
 */
function passThroughHeaders(headers: IncomingHttpHeaders, caller: IncomingHttpHeaders): OutgoingHttpHeaders {
  const passed = passedResponseHeaders(headers, caller)
  const policies = [foreignContentHeaders['content-security-policy'], passed['content-security-policy'] ?? []].flat()
  const own = { 'x-should-retry': 'false', 'content-security-policy': policies }
  return Object.assign({}, passed, foreignContentHeaders, own) as OutgoingHttpHeaders
}

export function pick(
  headers: IncomingHttpHeaders,
  names: readonly string[],
): Record<string, string | string[] | undefined> {
  return Object.fromEntries(names.filter((name) => headers[name] !== undefined).map((name) => [name, headers[name]]))
}
