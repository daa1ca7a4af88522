import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { eventStreamHeaders } from '@berth/runtime/http/event-stream.ts'
import type { Content } from './served-operation.ts'

const keepAliveMilliseconds = 15_000

interface AnswerHead {
  readonly status: number
  readonly type: string | undefined
}

export async function sendContent(response: ServerResponse, content: Content, head: AnswerHead): Promise<void> {
  const { body, headers } = content
  const length = body instanceof Uint8Array ? { 'content-length': body.length } : {}
  response.writeHead(content.status ?? head.status, {
    'content-type': head.type ?? 'application/octet-stream',
    ...length,
    ...headers,
  })
  if (body instanceof Uint8Array) response.end(body)
  // A source that fails half way is a broken answer: the caller must not take it for a whole one.
  else await pipeline(Readable.from(body, { objectMode: false }), response).catch(() => response.destroy())
}

/** A reader that is slow holds its source up; what may be lost meanwhile is the source's to decide. */
export async function sendEvents(
  response: ServerResponse,
  events: AsyncIterable<object>,
  status: number,
): Promise<void> {
  response.writeHead(status, eventStreamHeaders)
  response.flushHeaders()
  // One newline: an empty line would be an event without data, on which some clients break.
  const keepAlive = setInterval(() => response.write(': keepalive\n'), keepAliveMilliseconds)
  try {
    for await (const event of events) {
      if (response.destroyed) break
      if (!response.write(`data: ${JSON.stringify(event)}\n\n`)) await drained(response)
    }
    response.end()
  } catch {
    response.destroy()
  } finally {
    clearInterval(keepAlive)
  }
}

async function drained(response: ServerResponse): Promise<void> {
  await Promise.race([once(response, 'drain'), once(response, 'close')])
}
