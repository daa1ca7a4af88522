import { once } from 'node:events'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { OutboundGuard } from './outbound-guard.ts'

export interface GuardedGetOptions {
  readonly guard: OutboundGuard
  readonly limitMilliseconds: number
  readonly maxBytes: number
}

/** Requests a small text through the guard. Does not follow redirects. Throws an Error with the reason of a failure. */
export async function guardedGet(
  url: string,
  { guard, limitMilliseconds, maxBytes }: GuardedGetOptions,
): Promise<{ readonly status: number; readonly text: string }> {
  const refusal = guard.refusalOf(url)
  if (refusal) throw new Error(`${url} ${refusal}`)
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  const sent = request(url, {
    agent: false,
    lookup: guard.lookupFor(url),
    signal: AbortSignal.timeout(limitMilliseconds),
    headers: { accept: 'application/json' },
  })
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>
  sent.on('error', () => {}) // It fails again when its response is cut off.
  sent.end()
  const [response] = await answered
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxBytes) throw new Error(`${url} has more than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return { status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }
}
