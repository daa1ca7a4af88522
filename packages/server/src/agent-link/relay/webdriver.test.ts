import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { WebSocket } from 'ws'
import { TestServer } from '../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())
const project = await server.project()
const stranger = await server.project()
const session = await project.session()
const agent = server.host.agentOf(session.session_id as SessionId)
const token = new URL(session.cdp_ws_url).searchParams.get('jwt') ?? ''
const root = `/s/${session.session_id}/webdriver`
const classicId = 'a'.repeat(32)

function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${server.url}${path}`, init)
}

test('a command is sent to the agent with its body, and without token, key and cookie', async () => {
  const seen: [request: IncomingMessage, body: string][] = []
  agent.webDriver = async (request, response) => {
    seen.push([request, await text(request)])
    response.end('{"value":null}')
  }
  const body = '{"url":"http://a.test"}'

  const headers = { cookie: 'a=b', authorization: `Bearer ${token}` }
  const posted = await ask(`${root}/session/${classicId}/url`, { method: 'POST', body, headers })
  const asked = await ask(`${root}/session/${classicId}/url?jwt=${token}&x=1`)

  assert.deepEqual(
    seen.map(([{ method, url }, sent]) => [method, url, sent]),
    [
      ['POST', `/webdriver/session/${classicId}/url`, body],
      ['GET', `/webdriver/session/${classicId}/url`, ''],
    ],
  )
  assert.equal(seen[0]?.[0].headers.cookie, undefined)
  assert.equal(seen[0]?.[0].headers.authorization, undefined)
  assert.deepEqual(await posted.json(), { value: null })
  assert.equal(asked.headers.get('content-type'), 'application/json; charset=utf-8')
})

test('a new session gets the URLs of BiDi and CDP, and both work', async () => {
  const capabilities = { browserName: 'chrome', browserVersion: '156.0', webSocketUrl: 'ws://10.0.0.2/x' }
  agent.webDriver = (request, response) => {
    request.resume()
    response.end(JSON.stringify({ value: { sessionId: classicId, capabilities } }))
  }

  const response = await ask(`${root}/session?jwt=${token}`, { method: 'POST', body: '{}' })

  const { value } = (await response.json()) as { value: { capabilities: Record<string, string> } }
  const bidi = `${server.url.replace('http', 'ws')}${root}/session/${classicId}?jwt=${token}`
  const cdp = bidi.replace('?', '/se/cdp?')
  assert.deepEqual(value.capabilities, {
    ...{ ...capabilities, webSocketUrl: bidi, 'se:cdp': cdp, 'se:cdpVersion': '156.0' },
  })
  for (const address of [bidi, cdp]) {
    const socket = new WebSocket(address)
    await once(socket, 'open')
    socket.terminate()
  }
})

const strangers: readonly [
  what: string,
  path: string,
  headers: Record<string, string>,
  status: number,
  error: string,
][] = [
  ['no token', `${root}/session`, {}, 401, 'session not created'],
  ['no token for a command', `${root}/session/${classicId}/url`, {}, 401, 'unknown error'],
  ["another project's key", `${root}/session`, { authorization: `Bearer ${stranger.key}` }, 404, 'invalid session id'],
  ['a session that is none', `/s/brw${'0'.repeat(21)}/webdriver/session`, {}, 401, 'session not created'],
  ['NUL in the id', '/s/%00/webdriver/session', { authorization: `Bearer ${project.key}` }, 400, 'session not created'],
]
for (const [what, path, headers, status, error] of strangers) {
  test(`${what} is rejected in WebDriver's format, without a request to the agent`, async () => {
    agent.webDriver = () => assert.fail('the agent was asked')

    const response = await ask(path, { method: 'POST', body: '{}', headers })

    const { value } = (await response.json()) as { value: Record<string, unknown> }
    assert.deepEqual([response.status, value.error, value.stacktrace], [status, error, ''])
  })
}

test("the project's key opens it too", async () => {
  agent.webDriver = (_request, response) => void response.end('{"value":null}')

  const { status } = await ask(`${root}/status`, { headers: { authorization: `Bearer ${project.key}` } })

  assert.equal(status, 200)
})

const hostile: readonly [what: string, answer: string, status: number][] = [
  [
    'a cookie and a page',
    'HTTP/1.1 200 X\r\nset-cookie: a=b\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\n{}',
    502,
  ],
  ['status 000', 'HTTP/1.1 000 X\r\ncontent-length: 2\r\n\r\n{}', 502],
  ['status 999', 'HTTP/1.1 999 X\r\ncontent-length: 2\r\n\r\n{}', 502],
  ['no session', 'HTTP/1.1 200 X\r\ncontent-length: 14\r\n\r\n{"value":null}', 502],
  ['a session without end', `HTTP/1.1 200 X\r\n\r\n{"value":"${'x'.repeat(2 * 1024 * 1024)}`, 502],
  ['nothing', '', 502],
]
for (const [what, answer, status] of hostile) {
  test(`if an agent responds to a new session with ${what}, only the call fails`, async () => {
    agent.webDriver = ({ socket }) => void socket.end(answer)

    const response = await ask(`${root}/session?jwt=${token}`, { method: 'POST', body: '{}' })

    assert.equal(response.status, status)
    assert.equal(response.headers.get('set-cookie'), null)
    assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
    const { value } = (await response.json()) as { value: { error: string } }
    assert.equal(value.error, 'session not created')
  })
}
