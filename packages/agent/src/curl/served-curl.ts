import type { IncomingMessage } from 'node:http'
import { type CurlRequest, curl, rawCurlOperations } from '@berth/contract/agent/operations/curl-operations.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { Content, type OperationContext, type ServedOperation, serve } from '../operations/served-operation.ts'
import { sendByBrowser } from './browser-request.ts'
import type { HeaderList } from './hidden-page.ts'
import { HiddenPages } from './hidden-pages.ts'
import { answerHeaders, passedHeaders, wantedHeaders } from './request-headers.ts'

/** A body is sent to Chromium in one message, and returned in one JSON text. */
const maxBodyBytes = 32 * 1024 * 1024

export function servedCurl({ browser }: OperationContext): readonly ServedOperation[] {
  const pages = new HiddenPages(browser)
  return [
    serve(curl, ({ body, signal }) => answerCurl(pages, body, signal)),
    ...rawCurlOperations.map((operation) =>
      serve(operation, async ({ query, request, signal }) => {
        const body = operation.bodyType && (await readBody(request))
        const { rawHeaders } = request
        const { method } = operation
        const answer = await sendByBrowser({
          pages,
          request: { url: query.url, method, headers: passedHeaders(rawHeaders, body !== undefined), body },
          timeoutMilliseconds: query.timeout_ms,
          limits: 'head',
          signal,
        })
        return new Content(answer.body, { status: answer.status, headers: answerHeaders(answer.headers) })
      }),
    ),
  ]
}

async function answerCurl(
  pages: HiddenPages,
  { url, method, headers, body, ...options }: CurlRequest,
  signal: AbortSignal,
) {
  const started = performance.now()
  const answer = await sendByBrowser({
    pages,
    request: { url, method, headers: wantedHeaders(headers), body: body === undefined ? undefined : Buffer.from(body) },
    timeoutMilliseconds: options.timeout_ms,
    limits: 'whole',
    signal,
  })
  const bytes = await collect(answer.body)
  return {
    status: answer.status,
    headers: byName(answer.headers),
    body: bytes.toString(options.response_encoding),
    duration_ms: Math.round(performance.now() - started),
  }
}

function byName(headers: HeaderList): Record<string, string[]> {
  const map = Map.groupBy(headers, ([name]) => name.toLowerCase())
  return Object.fromEntries([...map].map(([name, pairs]) => [name, pairs.map(([, value]) => value)]))
}

async function collect(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    length += chunk.length
    if (length > maxBodyBytes) {
      const reason = `the answer is larger than ${maxBodyBytes} bytes; curl/raw streams it.`
      throw new BerthError('curl_failed', { reason })
    }
  }
  return Buffer.concat(chunks, length)
}

async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxBodyBytes) throw new BerthError('body_too_large', { limitBytes: maxBodyBytes })
    chunks.push(chunk)
  }
  return length > 0 ? Buffer.concat(chunks, length) : undefined
}
