import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import type { AuditLogEntry } from '@berth/contract/audit/audit-endpoints.ts'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import WebSocket from 'ws'
import type { TestProject } from '../testing/server-test.ts'
import { SharedServers } from '../testing/shared-servers.ts'
import { forwardedHeader, PeerSignature } from './peers/peer-signature.ts'

const servers = await SharedServers.open({ connectionLimits: { total: 1000, perAddress: 60 } })
after(() => servers.close())
const { first, second } = servers

/** A project as the second server serves it, and a session that runs on the first. */
async function elsewhere(): Promise<{ project: TestProject; session: Browser; id: SessionId }> {
  const project = await first.project()
  const session = await project.session()
  return { project: project.on(second), session, id: session.session_id as SessionId }
}

/** The address of the session for a client of the second server. */
function atSecond(address: string): string {
  const url = new URL(address)
  url.port = String(second.port)
  return url.href
}

test('a session is read, changed and deleted through the other server', async () => {
  const { project, id } = await elsewhere()

  const changed = await project.call('PATCH', `/browsers/${id}`, {
    name: 'renamed',
    viewport: { width: 800, height: 600 },
  })
  const read = await project.call('GET', '/browsers/renamed')
  const listed = await project.call<Browser[]>('GET', '/browsers')
  const deleted = await project.call('DELETE', '/browsers/renamed')

  assert.deepEqual([changed.status, changed.body.name, changed.body.viewport?.width], [200, 'renamed', 800])
  assert.deepEqual([read.body.session_id, listed.body.map(({ session_id }) => session_id)], [id, [id]])
  assert.deepEqual([deleted.status, first.host.has(id)], [204, false])
  assert.equal((await project.call('DELETE', `/browsers/${id}`)).status, 404)
})

test('a response contains addresses of the server that the client has asked', async () => {
  const { project, id } = await elsewhere()

  const { body } = await project.call('PATCH', `/browsers/${id}`, { name: 'mine' })
  const discovered = await fetch(atSecond(`${body.base_url}/json/version${new URL(body.cdp_ws_url).search}`))

  assert.equal(new URL(body.cdp_ws_url).port, String(second.port))
  const { webSocketDebuggerUrl } = (await discovered.json()) as { webSocketDebuggerUrl: string }
  assert.equal(new URL(webSocketDebuggerUrl).port, String(second.port))
})

test('every root of a session is served through the other server: by key, by token, and by token alone', async () => {
  const { project, session, id } = await elsewhere()
  first.host.agentOf(id).operate = (_request, response) => void response.end('{"here":true}')
  first.host.agentOf(id).webDriver = (_request, response) => void response.end('{"value":{"ready":true}}')
  const { search } = new URL(session.cdp_ws_url)

  const answers = await Promise.all([
    fetch(`${second.url}/browsers/${id}/fs/file_info?path=/tmp`, {
      headers: { authorization: `Bearer ${project.key}` },
    }),
    fetch(`${second.url}/s/${id}/fs/file_info${search}&path=/tmp`),
    fetch(`${second.url}/s/${id}/json/version${search}`),
    fetch(`${second.url}/json/version${search}`),
    fetch(`${second.url}/s/${id}/webdriver/status${search}`),
  ])

  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  )
  assert.equal((await fetch(`${second.url}/s/${id}/json/version?jwt=a.b.c`)).status, 401)
  assert.equal((await fetch(`${second.url}/s/${id}/nothing${search}`)).status, 404)
})

test('sessions of another project are not found', async () => {
  const { id } = await elsewhere()
  const other = (await first.project()).on(second)

  for (const [method, path] of [
    ['PATCH', ''],
    ['DELETE', ''],
    ['GET', '/fs/file_info?path=/tmp'],
  ] as const) {
    assert.equal((await other.call(method, `/browsers/${id}${path}`, method === 'PATCH' ? {} : undefined)).status, 404)
  }
})

test('a large body and its response are streamed in both directions at once', async () => {
  const { session, id } = await elsewhere()
  first.host.agentOf(id).operate = (request, response) => void request.pipe(response)
  const body = 'x'.repeat(5_000_000)

  const answer = await fetch(`${second.url}/s/${id}/fs/write_file${new URL(session.cdp_ws_url).search}&path=/a`, {
    method: 'PUT',
    body,
  })

  assert.equal((await answer.text()).length, body.length)
})

test('a body that is too large is rejected by the other server with 413 before it has arrived', async () => {
  const { project, id } = await elsewhere()

  const answers = await Promise.all(
    ['keep-alive', 'close'].map((connection) =>
      project.call<{ code: string }>(
        'PATCH',
        `/browsers/${id}`,
        { name: 'x'.repeat(20_000_000) },
        { headers: { connection } },
      ),
    ),
  )

  assert.deepEqual(
    answers.map(({ status, body }) => [status, body.code]),
    Array(2).fill([413, 'body_too_large']),
  )
})

test('a stream of events is forwarded while it is sent, and ends with the client', async () => {
  const { session, id } = await elsewhere()
  const begun = Promise.withResolvers<ServerResponse>()
  first.host.agentOf(id).operate = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    begun.resolve(response)
  }
  const client = new AbortController()

  const { search } = new URL(session.cdp_ws_url)
  const answer = await fetch(`${second.url}/s/${id}/fs/watch/w/events${search}`, { signal: client.signal })
  const stream = await begun.promise
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
  stream.write('data: {"n":1}\n\n')
  const { value } = await reader.read()
  client.abort()

  assert.match(Buffer.from(value ?? []).toString(), /"n":1/)
  if (!stream.destroyed) await once(stream, 'close')
})

test('an incomplete response is forwarded as incomplete', async () => {
  const { session, id } = await elsewhere()
  first.host.agentOf(id).operate = (_request, response) => {
    response.writeHead(200, { 'content-length': 10 }).write('half')
    setImmediate(() => response.destroy())
  }

  const answer = await fetch(`${second.url}/s/${id}/fs/file_info${new URL(session.cdp_ws_url).search}&path=/a`)

  await assert.rejects(answer.text())
})

for (const name of ['cdp_ws_url', 'webdriver_ws_url'] as const) {
  test(`forwards ${name} with large messages, until one side ends`, async () => {
    const { session, id } = await elsewhere()
    const socket = new WebSocket(atSecond(session[name]))
    await once(socket, 'open')

    socket.send('x'.repeat(3_000_000))
    const [echo] = await once(socket, 'message')
    first.host.agentOf(id).kill()
    await once(socket, 'close')

    assert.equal(String(echo).length, 3_000_000)
  })
}

test('a WebSocket that the other server rejects is rejected with its status', async () => {
  const { session } = await elsewhere()
  const statusOf = async (address: string) => {
    const socket = new WebSocket(address)
    socket.on('error', () => {})
    const [, response] = await once(socket, 'unexpected-response')
    response.resume()
    return response.statusCode
  }

  assert.equal(await statusOf(atSecond(session.cdp_ws_url).replace(/jwt=.*/, 'jwt=a.b.c')), 401)
  assert.equal(await statusOf(atSecond(session.cdp_ws_url).replace('/cdp', '/nothing')), 404)
})

test('a request is in the audit log once, with the address of its client', async () => {
  const { project, id } = await elsewhere()

  await project.call('PATCH', `/browsers/${id}`, { name: 'audited' })
  await project.call('DELETE', `/browsers/${id}`)

  await Promise.all([first.services.audit.flush(), second.services.audit.flush()])
  const { body } = await project.call<AuditLogEntry[]>('GET', `/audit-logs?${period()}`)
  const entries = body.filter(({ path }) => path === `/browsers/${id}`)
  assert.deepEqual(entries.map(({ method, status }) => [method, status]).toSorted(), [
    ['DELETE', 204],
    ['PATCH', 200],
  ])
})

test('a client cannot claim that its request was forwarded', async () => {
  const { project, id } = await elsewhere()
  const forged = new PeerSignature('another master key', first.clock)
  const url = `/browsers/${id}`
  const facts = { from: 'second', to: 'test', client: '203.0.113.7' }
  const headers = { [forwardedHeader]: forged.sign(facts, { method: 'PATCH', url }) }

  const here = await project.on(first).call('PATCH', url, { name: 'a' }, { headers })
  const there = await project.call('PATCH', url, { name: 'b' }, { headers })

  assert.deepEqual([here.status, there.status], [200, 200])
  await Promise.all([first.services.audit.flush(), second.services.audit.flush()])
  const { body } = await project.call<AuditLogEntry[]>('GET', `/audit-logs?${period()}`)
  assert.deepEqual(new Set(body.map(({ client_ip }) => client_ip)), new Set(['127.0.0.1']))
})

for (const [why, change] of [
  ['another server', { to: 'third' }],
  ['this one, which does not have its session', { to: 'second' }],
] as const) {
  test(`a request that was forwarded for ${why} is not forwarded again`, async () => {
    const { project, id } = await elsewhere()
    const facts = { from: 'test', client: '203.0.113.7', ...change }
    const path = `/browsers/${id}/fs/file_info?path=/tmp`
    const headers = { [forwardedHeader]: second.services.signature.sign(facts, { method: 'GET', url: path }) }

    const answer = await project.call<{ code: string }>('GET', path, undefined, { headers })

    assert.deepEqual([answer.status, answer.body.code], [502, 'session_unreachable'])
  })
}

test('a signature of another server is valid for one minute, one method and one URL', async () => {
  const { project, id } = await elsewhere()
  const path = `/browsers/${id}/fs/file_info?path=/tmp`
  const facts = { from: 'second', to: 'test', client: '203.0.113.7' }
  const { signature } = second.services
  first.host.agentOf(id).operate = (_request, response) => void response.end('{}')
  const others = [
    { method: 'POST', url: path },
    { method: 'GET', url: `${path}2` },
  ].map((request) => signature.sign(facts, request))
  const late = signature.sign(facts, { method: 'GET', url: path })
  const verified = (value: string) => signature.verify(value, { method: 'GET', url: path })

  assert.equal(verified(late)?.client, '203.0.113.7')
  assert.deepEqual(others.map(verified), [undefined, undefined])
  assert.equal(verified('x.y'), undefined)
  first.clock.advance(61)
  const fresh = verified(late)
  assert.equal(fresh && signature.isFresh(fresh), false)
  // It is served here nevertheless: only the statement of the other server is ignored.
  assert.equal(
    (await project.on(first).call('GET', path, undefined, { headers: { [forwardedHeader]: late } })).status,
    200,
  )
})

test('an entry of the audit log of a forwarded request has the address of the client', async () => {
  const { project, id } = await elsewhere()
  const url = `/browsers/${id}`
  const signed = second.services.signature.sign(
    { from: 'second', to: 'test', client: '203.0.113.9' },
    { method: 'PATCH', url },
  )

  await project.on(first).call('PATCH', url, { name: 'seen' }, { headers: { [forwardedHeader]: signed } })

  await first.services.audit.flush()
  const { body } = await project.call<AuditLogEntry[]>('GET', `/audit-logs?${period()}`)
  assert.equal(body.find(({ method }) => method === 'PATCH')?.client_ip, '203.0.113.9')
})

test('connections of other servers are not counted as those of one client', async () => {
  const { session } = await elsewhere()
  const open = async (address: string) => {
    const socket = new WebSocket(address)
    await once(socket, 'open')
    return socket
  }
  const passedOn = await Promise.all(Array.from({ length: 50 }, () => open(atSecond(session.cdp_ws_url))))
  assert.equal(second.services.forwarding.openConnections, 50)

  // Together with those of the other server, they would exceed the limit of one address.
  const direct = await Promise.all(Array.from({ length: 15 }, () => open(session.cdp_ws_url)))

  for (const socket of [...passedOn, ...direct]) socket.terminate()
})

test('a session of an unreachable server can only be read', {
  timeout: 60_000,
}, async () => {
  const { project, session, id } = await elsewhere()
  const nowhere = 'http://127.0.0.1:1'
  const moveFirst = async (address: string | null) => {
    await first.database.updateTable('servers').set({ address }).where('id', '=', 'test').execute()
    second.clock.advance(10)
  }

  for (const address of [nowhere, null]) {
    await moveFirst(address)
    for (const [method, body] of [
      ['PATCH', {}],
      ['DELETE', undefined],
    ] as const) {
      const answer = await project.call<{ code: string }>(method, `/browsers/${id}`, body)
      assert.deepEqual([method, answer.status, answer.body.code], [method, 502, 'session_unreachable'])
    }
    const socket = new WebSocket(atSecond(session.cdp_ws_url))
    socket.on('error', () => {})
    const [, response] = await once(socket, 'unexpected-response')
    assert.equal(response.statusCode, 502)
    response.resume()
  }
  assert.equal((await project.call('GET', `/browsers/${id}`)).body.session_id, id)

  await moveFirst(first.url)
  assert.equal((await project.call('DELETE', `/browsers/${id}`)).status, 204)
})

test('an upload to an unreachable server is answered, and its connection stays open', async () => {
  const { session, id } = await elsewhere()
  await first.database.updateTable('servers').set({ address: 'http://127.0.0.1:1' }).where('id', '=', 'test').execute()
  second.clock.advance(10)
  const path = `/s/${id}/fs/write_file${new URL(session.cdp_ws_url).search}&path=/a`
  const asking = httpRequest({ port: second.port, method: 'PUT', path, headers: { 'transfer-encoding': 'chunked' } })

  asking.write('begin')
  const [answer] = await once(asking, 'response')
  asking.end('end')

  assert.equal(answer.statusCode, 502)
  assert.match(await text(answer), /session_unreachable/)
  await first.database.updateTable('servers').set({ address: first.url }).where('id', '=', 'test').execute()
  second.clock.advance(10)
})

function period(): string {
  const now = first.clock.now().getTime()
  const [start, end] = [now - 86_400_000, now + 86_400_000].map((time) => new Date(time).toISOString())
  return `start=${start}&end=${end}`
}
