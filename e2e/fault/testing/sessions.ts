import assert from 'node:assert/strict'
import type { Berth } from '../../testing/berth.ts'
import { CdpClient } from '../../testing/cdp.ts'

export interface SessionRecord {
  readonly session_id: string
  readonly name?: string
  readonly cdp_ws_url: string
}

export interface Answer<Body = SessionRecord> {
  readonly status: number
  readonly shouldRetry: string | null
  readonly body: Body
}

/** Sends a request on a connection of its own, so that none stays open for a later call. */
export async function call<Body = SessionRecord>(
  berth: Berth,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer<Body>> {
  const response = await berth.request(path, {
    method,
    headers: { connection: 'close', ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return {
    status: response.status,
    shouldRetry: response.headers.get('x-should-retry'),
    body: (text === '' ? undefined : JSON.parse(text)) as Body,
  }
}

export async function createSession(
  berth: Berth,
  request: Readonly<Record<string, unknown>> = {},
): Promise<SessionRecord> {
  const { status, body } = await call(berth, 'POST', '/browsers', { headless: true, ...request })
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

export async function deleteSession(berth: Berth, idOrName: string): Promise<number> {
  const { status } = await call(berth, 'DELETE', `/browsers/${idOrName}`)
  return status
}

export async function isActive(berth: Berth, idOrName: string): Promise<boolean> {
  const { status } = await call(berth, 'GET', `/browsers/${idOrName}`)
  assert.ok(status === 200 || status === 404, `GET answers 200 or 404, not ${status}`)
  return status === 200
}

/** Only a working browser can answer this. */
export async function canBeUsed({ cdp_ws_url }: SessionRecord): Promise<boolean> {
  const client = await CdpClient.open(cdp_ws_url)
  const sum = await client.evaluate(await client.openPage(), '20 + 22')
  await client.close()
  return sum === 42
}
