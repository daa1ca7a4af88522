import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Content } from './served-operation.ts'

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
  // Break the response if the source fails halfway, so that the caller does not take it for a complete one.
  else await pipeline(Readable.from(body, { objectMode: false }), response).catch(() => response.destroy())
}
