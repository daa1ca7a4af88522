import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { TestServer } from '../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())
const project = await server.project()
const session = await project.session()
const agent = server.host.agentOf(session.session_id as SessionId)
const { search } = new URL(session.cdp_ws_url)

const heads = ['set-cookie: a=b', 'service-worker-allowed: /', 'clear-site-data: "*"', 'alt-svc: h3=":1"'].join('\r\n')

function answerOf(status: string, body = '{}', headers = `content-length: ${Buffer.byteLength(body)}`): string {
  return `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: text/html\r\n${heads}\r\n${headers}\r\n\r\n${body}`
}

/** Makes the agent write exactly this in response to every request. */
function agentWrites(answer: string): void {
  agent.operate = agent.discover = ({ socket }) => void socket.end(answer)
}

function assertHarmless({ headers }: Response): void {
  for (const line of heads.split('\r\n')) {
    const [name = ''] = line.split(':')
    assert.equal(headers.get(name), null, name)
  }
  assert.equal(headers.get('x-content-type-options'), 'nosniff')
}

const operationAnswers: readonly (readonly [what: string, answer: string, status: number])[] = [
  ['200', answerOf('200 OK'), 200],
  ['599', answerOf('599 X'), 599],
  ...['000', '100', '101', '102', '199', '600', '999'].map((code) => [code, answerOf(`${code} X`), 502] as const),
  ['a status of four digits', answerOf('2000 X'), 502],
  ['no number', answerOf('abc X'), 502],
  ['two lengths', answerOf('200 OK', '{}', 'content-length: 2\r\ncontent-length: 3'), 502],
  ['a head without end', `HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(20_000)}`, 502],
  ['nothing', '', 502],
]
for (const [what, answer, status] of operationAnswers) {
  test(`if an agent responds to an operation with ${what}, the caller gets ${status}`, async () => {
    agentWrites(answer)

    const response = await fetch(`${session.base_url}/fs/file_info${search}&path=/tmp`)

    assert.equal(response.status, status)
    if (status === 502) assert.match(await response.text(), /"code":"operation_interrupted"/)
    else assertHarmless(response)
  })
}

const target = { id: 'T', type: 'page', title: 'x', url: 'about:blank' }
const own = 'ws://127.0.0.1:9222/devtools/page/T'
const discoveryAnswers: readonly (readonly [path: string, what: string, answer: string, status: number])[] = [
  ['version', 'a number', answerOf('200 OK', '1'), 502],
  ['version', 'a text', answerOf('200 OK', '"<script>"'), 502],
  ['version', 'a page', answerOf('200 OK', '<script>alert(1)</script>'), 502],
  ['version', 'null', answerOf('200 OK', 'null'), 502],
  ['version', 'no address', answerOf('200 OK', '{"Browser":"x"}'), 502],
  ['version', 'no JSON', answerOf('200 OK', '{"Browser":'), 502],
  ['version', 'a redirect', answerOf('302 Found', '', 'location: https://x.test\r\ncontent-length: 0'), 502],
  ['version', 'a failure', answerOf('500 X', '<script>'), 502],
  ['list', 'an object', answerOf('200 OK', '{}'), 502],
  ['list', 'null in a list', answerOf('200 OK', '[null]'), 502],
  ['list', '100,000 levels', answerOf('200 OK', '['.repeat(100_000) + ']'.repeat(100_000)), 502],
  [
    'list',
    'an address outside',
    answerOf('200 OK', JSON.stringify([{ ...target, webSocketDebuggerUrl: 'ws://x/cdp' }])),
    502,
  ],
  [
    'list',
    'fields of its own',
    answerOf('200 OK', JSON.stringify([{ ...target, jwt: 'x', webSocketDebuggerUrl: own }])),
    200,
  ],
  ['new', 'a list', answerOf('200 OK', '[]'), 502],
  ['protocol', 'a text', answerOf('200 OK', 'x'), 502],
  ['close/T', 'a page', answerOf('200 OK', '<script>alert(1)</script>'), 502],
  ['close/T', 'Target is closing', answerOf('200 OK', 'Target is closing'), 200],
  ['other', 'a page', answerOf('404 X', '<script>'), 404],
]
for (const [path, what, answer, status] of discoveryAnswers) {
  test(`if an agent responds to /json/${path} with ${what}, the client gets ${status}`, async () => {
    agentWrites(answer)

    const response = await fetch(`${session.base_url}/json/${path}${search}`)

    assert.equal(response.status, status)
    const body = await response.text()
    assert.doesNotMatch(body, /<script>/)
    if (status !== 200) return assert.ok((JSON.parse(body) as { code: string }).code)
    assertHarmless(response)
    assert.equal(response.headers.get('content-security-policy'), 'sandbox')
    if (path === 'list')
      assert.deepEqual(Object.keys(JSON.parse(body)[0]), ['id', 'title', 'type', 'url', 'webSocketDebuggerUrl'])
  })
}
