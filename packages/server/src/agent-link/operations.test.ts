import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { operations } from '@berth/contract/agent/operations.ts'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { isStream } from '@berth/contract/stream.ts'
import { TestServer } from '../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())
const project = await server.project()

async function sessionWith(operate: RequestListener): Promise<Browser> {
  const session = await project.session()
  server.host.agentOf(session.session_id as SessionId).operate = operate
  return session
}

function call(session: Browser, query = 'path=/tmp', init: RequestInit = {}): Promise<Response> {
  return fetch(`${server.url}/browsers/${session.session_id}/fs/file_info?${query}`, {
    ...init,
    headers: { authorization: `Bearer ${project.key}`, ...(init.headers as Record<string, string>) },
  })
}

test('an agent receives no key, cookie or token of a request', async () => {
  const seen: IncomingMessage[] = []
  const session = await sessionWith((request, response) => {
    seen.push(request)
    response.end('{}')
  })
  const token = new URL(session.cdp_ws_url).searchParams.get('jwt')

  await call(session, 'path=/tmp%20a', { headers: { cookie: 'a=b', range: 'bytes=0-1', 'x-other': '1' } })
  await fetch(`${session.base_url}/fs/file_info?jwt=${token}&path=/tmp`)

  assert.deepEqual(
    seen.map(({ url }) => url),
    ['/operations/fs/file_info?path=/tmp%20a', '/operations/fs/file_info?path=/tmp'],
  )
  const { authorization, cookie, range, 'x-other': other } = seen[0]?.headers ?? {}
  assert.deepEqual([authorization, cookie, range, other], [undefined, undefined, 'bytes=0-1', undefined])
})

test('responses of a compromised agent never act on the origin of berth', async () => {
  const session = await sessionWith((_request, response) => {
    response.writeHead(200, {
      'content-type': 'text/html',
      'set-cookie': 'a=b',
      'access-control-allow-credentials': 'true',
      'content-security-policy': "default-src 'unsafe-inline'",
      'service-worker-allowed': '/',
      'clear-site-data': '"*"',
    })
    response.end('<script>alert(1)</script>')
  })

  const { headers } = await call(session)

  assert.equal(headers.get('content-type'), 'text/html')
  assert.equal(headers.get('content-security-policy'), 'sandbox')
  assert.equal(headers.get('x-content-type-options'), 'nosniff')
  assert.equal(headers.get('access-control-allow-origin'), '*')
  for (const name of ['set-cookie', 'access-control-allow-credentials', 'service-worker-allowed', 'clear-site-data']) {
    assert.equal(headers.get(name), null, name)
  }
})

test('a stream of events has the headers that clients and proxies need, whatever the agent sends', async () => {
  const session = await sessionWith((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html', 'cache-control': 'public', 'x-accel-buffering': 'yes' })
    response.end('data: {}\n\n')
  })
  const token = new URL(session.cdp_ws_url).search
  const streams = operations.filter(isStream)

  assert.ok(streams.length >= 2)
  for (const { agentPath, method } of streams) {
    const path = agentPath.replaceAll(/\{\w+\}/g, 'x')
    const { headers } = await fetch(`${session.base_url}${path}${token}`, { method })
    assert.equal(headers.get('content-type'), 'text/event-stream')
    assert.equal(headers.get('cache-control'), 'no-cache, no-transform')
    assert.equal(headers.get('x-accel-buffering'), 'no')
    assert.equal(headers.get('x-sse-content-type'), 'application/json')
  }
})

test('responses are streamed, starting with their headers', async () => {
  const streams: ServerResponse[] = []
  const session = await sessionWith((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    streams.push(response)
  })

  const answer = await call(session)
  streams[0]?.end('data: {}\n\n')

  assert.equal(answer.headers.get('content-type'), 'text/event-stream')
  assert.equal(await answer.text(), 'data: {}\n\n')
})

test('a client that disconnects ends its request at the agent', async () => {
  const begun = Promise.withResolvers<ServerResponse>()
  const session = await sessionWith((_request, response) => begun.resolve(response))
  const client = new AbortController()
  const asked = call(session, 'path=/tmp', { signal: client.signal })
  const response = await begun.promise

  client.abort()

  await assert.rejects(asked)
  if (!response.destroyed) await once(response, 'close')
})

test('an agent that disconnects during a response is distinguished from an unreachable one', async () => {
  const session = await sessionWith((request) => request.socket.destroy())

  const interrupted = await call(session)
  assert.equal(interrupted.status, 502)
  assert.equal(interrupted.headers.get('x-should-retry'), 'false')
  assert.equal(((await interrupted.json()) as { code: string }).code, 'operation_interrupted')

  const broken = await sessionWith((_request, response) => {
    response.writeHead(200, { 'content-length': 10 }).write('half')
    setImmediate(() => response.destroy())
  })
  await assert.rejects((await call(broken)).text(), 'a broken answer is not taken for a whole one')
})

test('sessions of another project are not found', async () => {
  const session = await sessionWith((_request, response) => response.end('{}'))
  const other = await server.project()

  const answer = await call(session, 'path=/tmp', { headers: { authorization: `Bearer ${other.key}` } })

  assert.equal(answer.status, 404)
  assert.match(await text(answer.body as unknown as NodeJS.ReadableStream), /session_not_found/)
})
