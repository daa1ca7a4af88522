import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { Operation } from '@berth/contract/agent/operation.ts'
import { isStream } from '@berth/contract/stream.ts'
import { eventStreamHeaders } from '@berth/runtime/http/event-stream.ts'
import { foreignContentHeaders } from '@berth/runtime/http/mount.ts'
import { passedAnswerHeaders } from './pass-through-headers.ts'

/** Of the answer of an agent, what describes its content. An agent that was taken over sets no cookie and lifts no protection. */
const contentHeaders = [
  ...['content-type', 'content-length', 'content-range', 'content-disposition', 'accept-ranges'],
  ...['last-modified', 'etag', 'cache-control', 'retry-after', 'x-should-retry', 'x-request-id'],
]

export interface AnswerHead {
  readonly status: number
  readonly headers: OutgoingHttpHeaders
}

/** The head under which an agent's answer goes to the caller; nothing when the agent's own is none that an answer can have. */
export function answerHeadFor(
  operation: Operation,
  { statusCode: status = 0, headers }: IncomingMessage,
  caller: IncomingHttpHeaders,
): AnswerHead | undefined {
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

/** Those of another server, whose errors are none of ours: a client that sends again by itself would send it twice. */
function passThroughHeaders(headers: IncomingHttpHeaders, caller: IncomingHttpHeaders): OutgoingHttpHeaders {
  const passed = passedAnswerHeaders(headers, caller)
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
