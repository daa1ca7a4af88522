import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { newId, type SessionId } from '@berth/contract/common/ids.ts'
import { TestServer } from '../testing/server-test.ts'
import { OwnSessionSocket } from './own-session-socket.ts'

const server = await TestServer.open()
const folder = await mkdtemp(join(tmpdir(), 'berth-own-session-'))
const path = join(folder, 'own-session', 'server.sock')
const socket = await OwnSessionSocket.open({
  path,
  server: server.httpServer,
  sessionOn: (id) => server.services.machines.sessionOn(id),
})
after(async () => {
  await socket.close()
  await server.close()
  await rm(folder, { recursive: true })
})
const project = await server.project()
const [own, other] = [await project.session(), await project.session()]
server.host.agentOf(own.session_id as SessionId).operate = (_request, response) => void response.end('{"own":true}')

/** Opens a connection like egress, for the machine of this session. */
async function open(session: string | undefined, line = `{"type":"own-session","session_id":"${session}"}\n`) {
  const connection = connect({ path, allowHalfOpen: true })
  connection.on('error', () => {}) // A refused connection is closed.
  await once(connection, 'connect')
  connection.write(line)
  return connection
}

async function ask(session: string, request: string): Promise<string> {
  const connection = await open(session)
  connection.write(request)
  return text(connection)
}

function request(target: string, { method = 'GET', key }: { method?: string; key?: string } = {}): string {
  const authorization = key === undefined ? '' : `authorization: Bearer ${key}\r\n`
  return `${method} ${target} HTTP/1.1\r\nhost: berth.test\r\nconnection: close\r\n${authorization}\r\n`
}

function tokenOf({ cdp_ws_url }: { readonly cdp_ws_url: string }): string {
  return new URL(cdp_ws_url).searchParams.get('jwt') ?? ''
}

test('a session reaches its own addresses only with its token, like any client', async () => {
  const root = `/s/${own.session_id}`

  const answer = await ask(own.session_id, request(`${root}/fs/file_info?path=/tmp&jwt=${tokenOf(own)}`))
  const without = await ask(own.session_id, request(`${root}/fs/file_info?path=/tmp`))

  assert.match(answer, /^HTTP\/1\.1 200 /)
  assert.match(answer, /\{"own":true\}$/)
  assert.match(without, /^HTTP\/1\.1 401 /)
})

test('egress may identify the session by its machine', async () => {
  const { machine_id: machineId } = await server.row(own.session_id)
  const target = (id: string) => request(`/s/${id}/fs/file_info?path=/tmp&jwt=${tokenOf(own)}`)

  const answer = await ask(machineId, target(own.session_id))
  const byAnother = await ask((await server.row(other.session_id)).machine_id, target(own.session_id))

  assert.match(answer, /^HTTP\/1\.1 200 /)
  assert.match(byAnother, /^HTTP\/1\.1 40[134] /)
})

const { session_id: ownId } = own
const foreign: readonly [name: string, target: string][] = [
  ['the API', '/browsers'],
  ["the API's view of the session itself", `/browsers/${ownId}`],
  ['another session', `/s/${other.session_id}/fs/file_info?path=/tmp&jwt=${tokenOf(other)}`],
  ['another session behind dots', `/s/${ownId}/../${other.session_id}/json/version?jwt=${tokenOf(other)}`],
  ['another session behind encoded dots', `/s/${ownId}/%2e%2E/${other.session_id}/json/version?jwt=${tokenOf(other)}`],
  ['a session whose id begins like its own', `/s/${ownId}x/json/version`],
  ['discovery at the root', `/json/version?jwt=${tokenOf(own)}`],
  ['the documentation', '/docs'],
  ['the metrics', '/metrics'],
  ['the health', '/health'],
  ['the whole address', `http://berth.test/s/${ownId}/json/version?jwt=${tokenOf(own)}`],
]
for (const [name, target] of foreign) {
  test(`a session does not reach ${name}, with any key`, async () => {
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const answer = await ask(ownId, request(target, { method, key: project.key }))
      assert.match(answer, /^HTTP\/1\.1 403 /, method)
    }
  })
}

test('a request after a permitted one on the same connection is checked separately', async () => {
  const allowed = `GET /s/${ownId}/fs/file_info?path=/tmp&jwt=${tokenOf(own)} HTTP/1.1\r\nhost: berth.test\r\n\r\n`

  const answers = await ask(ownId, allowed + request('/browsers', { key: project.key }))

  assert.deepEqual(answers.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 403'])
})

test('a session opens a WebSocket only to itself', async () => {
  const upgrade = (session: { session_id: string; cdp_ws_url: string }) =>
    `GET /s/${session.session_id}/cdp?jwt=${tokenOf(session)} HTTP/1.1\r\nhost: berth.test\r\nconnection: upgrade\r\n` +
    'upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
  const [mine, theirs] = [await open(ownId), await open(ownId)]

  mine.write(upgrade(own))
  theirs.write(upgrade(other))

  assert.match(await firstLine(mine), /^HTTP\/1\.1 101 /)
  assert.match(await firstLine(theirs), /^HTTP\/1\.1 403 /)
  mine.destroy()
})

const badLines: readonly [name: string, line: string][] = [
  ['no JSON', 'own-session\n'],
  ['another type', `{"type":"connect","session_id":"${ownId}"}\n`],
  ['no id', '{"type":"own-session","session_id":"../x"}\n'],
  ['a line without an end', `{"type":"own-session","session_id":"${'x'.repeat(2_000)}`],
]
for (const [name, line] of badLines) {
  test(`a connection that begins with ${name} is closed without a response`, async () => {
    const connection = await open(undefined, line)
    connection.write(request(`/s/${ownId}/json/version`))

    assert.equal(await text(connection).catch(() => ''), '')
  })
}

test('a session has at most 64 open connections, and those of others are not counted', async () => {
  const { session_id: busy } = await project.session()
  const connections = await Promise.all(Array.from({ length: 64 }, () => open(busy)))
  // Each has been counted when its response arrives.
  const head = `HEAD /s/${busy}/fs/file_info HTTP/1.1\r\nhost: berth.test\r\n\r\n`
  await Promise.all(
    connections.map((connection) => {
      connection.write(head)
      return firstLine(connection)
    }),
  )

  const beyond = await ask(busy, request(`/s/${busy}/fs/file_info`)).catch(() => '')
  const others = await ask(other.session_id, request(`/s/${other.session_id}/fs/file_info`))
  const [first] = connections
  first?.destroy()
  let again = ''
  while (again === '') again = await ask(busy, request(`/s/${busy}/fs/file_info`)).catch(() => '')

  assert.equal(beyond, '')
  assert.match(others, /^HTTP\/1\.1 401 /)
  assert.match(again, /^HTTP\/1\.1 401 /)
  for (const connection of connections) connection.destroy()
})

async function firstLine(connection: Socket): Promise<string> {
  const [chunk] = (await once(connection, 'data')) as [Buffer]
  return chunk.toString().split('\r\n', 1)[0] ?? ''
}

test('the machine of an app is an ordinary client: it has access to its project, and only with its key', async () => {
  const machine = newId('machine', server.clock.now())

  const answer = await ask(machine, request('/browsers', { key: project.key }))
  const withToken = await ask(machine, request(`/s/${own.session_id}/fs/file_info?path=/tmp&jwt=${tokenOf(own)}`))
  const without = await ask(machine, request('/browsers'))

  assert.match(answer, /^HTTP\/1\.1 200 /)
  assert.match(withToken, /^HTTP\/1\.1 200 /)
  assert.match(without, /^HTTP\/1\.1 401 /)
})
