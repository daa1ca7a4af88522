import { once } from 'node:events'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { WebhookAttempt } from '@berth/contract/webhooks/webhook.ts'
import { Webhook } from 'standardwebhooks'
import type { OutboundGuard } from '../../outbound/outbound-guard.ts'

const maxResponseBytes = 4_096
const maxResponseLength = 1_000
const maxErrorLength = 300
/** The longest pause that an endpoint can request. */
const maxPauseSeconds = 60 * 60

export interface Attempt {
  readonly url: string
  readonly eventId: string
  readonly payload: string
  /** Newest first. Each signs the delivery. */
  readonly secrets: readonly string[]
}

interface AttemptOptions {
  readonly guard: OutboundGuard
  readonly limitMilliseconds: number
  readonly userAgent: string
  readonly at: Date
  readonly signal: AbortSignal
}

export interface AttemptResult {
  readonly record: WebhookAttempt
  /** The pause that the endpoint requests. */
  readonly pauseSeconds: number | undefined
}

/** Sends a delivery once. Rejects only when the signal aborts. */
export async function deliverWebhook(
  attempt: Attempt,
  { guard, limitMilliseconds, userAgent, at, signal }: AttemptOptions,
): Promise<AttemptResult> {
  const begin = performance.now()
  const limit = AbortSignal.timeout(limitMilliseconds)
  const record = (outcome: Partial<WebhookAttempt>) => ({
    at: at.toISOString(),
    duration_ms: Math.round(performance.now() - begin),
    ...outcome,
  })
  try {
    const refusal = guard.refusalOf(attempt.url)
    if (refusal) throw new Error(`the URL ${refusal}`)
    const request = open(attempt, { guard, userAgent, at, signal: AbortSignal.any([limit, signal]) })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    const text = await readSome(response)
    const { statusCode: status = 0 } = response
    const isSuccess = status >= 200 && status < 300
    const outcome = { response_status: status, ...(text && { response_body: text }) }
    return {
      record: record({ ...outcome, ...(!isSuccess && { error: `the endpoint answered ${status}` }) }),
      pauseSeconds: isSuccess ? undefined : pauseOf(response),
    }
  } catch (error) {
    signal.throwIfAborted()
    const reason = limit.aborted ? `no response within ${limitMilliseconds / 1000} s` : (error as Error).message
    return { record: record({ error: reason.slice(0, maxErrorLength) || 'no connection' }), pauseSeconds: undefined }
  }
}

/** Redirects are not followed: the owner must change the URL of the webhook. */
function open(
  { url, eventId, payload, secrets }: Attempt,
  { guard, userAgent, at, signal }: Omit<AttemptOptions, 'limitMilliseconds'>,
) {
  const body = Buffer.from(payload)
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  const sent = request(url, {
    method: 'POST',
    // A new connection for each delivery, so that none stays open to an endpoint.
    agent: false,
    lookup: guard.lookupFor(url),
    signal,
    headers: {
      'content-type': 'application/json',
      'content-length': body.length,
      'user-agent': userAgent,
      'webhook-id': eventId,
      'webhook-timestamp': Math.floor(at.getTime() / 1000),
      'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(eventId, at, payload)).join(' '),
    },
  })
  // It may fail again when its response is cut off.
  sent.on('error', () => {})
  sent.end(body)
  return sent
}

/** The start of the body. A longer body is cut off; the status still counts. */
async function readSome(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of response) {
      chunks.push(chunk)
      length += chunk.length
      if (length >= maxResponseBytes) break
    }
  } catch {
    // The status has arrived and counts, whatever happens to the body.
  } finally {
    response.destroy()
  }
  // PostgreSQL cannot store NUL.
  return Buffer.concat(chunks).toString().slice(0, maxResponseLength).toWellFormed().replaceAll('\0', '\uFFFD')
}

function pauseOf({ headers }: IncomingMessage): number | undefined {
  const text = headers['retry-after']
  return text && /^\d+$/.test(text) ? Math.min(Number(text), maxPauseSeconds) : undefined
}
