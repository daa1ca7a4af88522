import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { operations } from '@berth/contract/agent/operations.ts'
import type { AuditLogEntry } from '@berth/contract/audit/audit-endpoints.ts'
import type { ProjectId } from '@berth/contract/common/ids.ts'
import { publicEndpoints } from '@berth/contract/index.ts'
import { newApiKey } from '../../access/secrets.ts'
import { type ApiAnswer, type TestProject, TestServer } from '../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

interface Failure {
  readonly code: string
  readonly message: string
}

const hour = 60 * 60

/** A query of the hours around now. */
function query(parameters: Record<string, string> = {}): string {
  const now = server.clock.now().getTime()
  const time = (milliseconds: number) => new Date(milliseconds).toISOString()
  return new URLSearchParams({ start: time(now - hour * 1000), end: time(now + hour * 1000), ...parameters }).toString()
}

async function list(owner: TestProject, parameters: Record<string, string> = {}): Promise<AuditLogEntry[]> {
  const { status, body } = await owner.call<AuditLogEntry[]>('GET', `/audit-logs?${query(parameters)}`)
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

async function chunk(owner: TestProject, parameters: Record<string, string> = {}) {
  const response = await fetch(`${server.url}/audit-logs/export/chunk?${query(parameters)}`, {
    headers: { authorization: `Bearer ${owner.key}` },
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  assert.equal(response.status, 200, bytes.toString())
  assert.equal(response.headers.get('x-content-sha256'), createHash('sha256').update(bytes).digest('hex'))
  assert.equal(response.headers.get('content-encoding'), null)
  return { bytes, headers: response.headers, next: response.headers.get('x-next-cursor') }
}

const mutating = publicEndpoints.filter(
  ({ method, access }) => method !== 'GET' && (access === 'project' || access === 'organization'),
)

test('every operation that may change something is one entry, whatever its outcome', async () => {
  const owner = await server.project()
  const expected: string[] = []

  for (const { method, path } of mutating) {
    const filled = path.replaceAll(/\{\w+\}/g, 'nothing')
    const { status } = await owner.call(method, filled, method === 'DELETE' ? undefined : {})
    expected.push(`${method} ${path} ${filled} ${status}`)
  }

  const entries: AuditLogEntry[] = []
  for (let token: string | null = ''; token !== null; ) {
    const page: ApiAnswer<AuditLogEntry[]> = await owner.call(
      'GET',
      `/audit-logs?${query({ page_token: token, limit: '50' })}`,
    )
    entries.push(...page.body)
    token = page.headers.get('x-next-page-token')
  }
  const found = entries.map(({ method, route, path, status }) => `${method} ${route} ${path} ${status}`)
  assert.deepEqual(found.toSorted(), expected.toSorted())
  assert.ok(found.length > 40)
})

test('every operation by the token of a session is one entry, too', async () => {
  const owner = await server.project()
  const session = await owner.session()
  const token = new URL(session.cdp_ws_url).searchParams.get('jwt')
  server.host.agentOf(session.session_id as never).operate = (request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  }
  const before = (await list(owner)).length
  server.clock.advance(1)
  const routes = operations.filter(({ method }) => method !== 'GET' && method !== 'HEAD')

  for (const { method, agentPath } of routes) {
    const path = agentPath.replaceAll(/\{\w+\}/g, '1')
    await (await fetch(`${server.url}/s/${session.session_id}${path}?jwt=${token}`, { method })).text()
  }

  const entries = (await list(owner)).slice(0, -before)
  assert.equal(entries.length, routes.length)
  for (const entry of entries) {
    assert.deepEqual([entry.auth_strategy, entry.user_id, entry.status], ['session_token', session.session_id, 200])
    assert.ok(!JSON.stringify(entry).includes(String(token)))
    assert.ok(entry.route.startsWith('/s/{session_id}/'))
  }
})

test('a key that is used below the address of a session is recorded as the key', async () => {
  const owner = await server.project()
  const session = await owner.session()
  server.clock.advance(1)

  await owner.call('POST', `/s/${session.session_id}/computer/get_mouse_position`)

  const [entry, earlier] = await list(owner)
  assert.deepEqual([entry?.auth_strategy, entry?.user_id], ['api_key', earlier?.user_id])
})

test('reading requests and unknown callers are not recorded', async () => {
  const owner = await server.project()
  for (const { path } of publicEndpoints.filter(({ method, access }) => method === 'GET' && access !== 'public')) {
    await owner.call('GET', path.replaceAll(/\{\w+\}/g, 'nothing')).catch(() => {})
  }
  await owner.call('POST', '/browsers', {}, { key: 'sk_unknown' })

  assert.deepEqual(await list(owner), [])
})

test('an entry contains caller, operation, client, address and outcome', async () => {
  const owner = await server.project()
  const headers = { 'user-agent': 'Kernel/JS 0.84.0' }

  await owner.call('POST', '/profiles?secret=x', { name: 'one' }, { headers })

  const { body: keys } = await owner.call<{ id: string }[]>('GET', '/org/api_keys')
  const [{ duration_ms, ...entry } = { duration_ms: -1 }] = await list(owner)
  assert.ok(Number.isInteger(duration_ms) && duration_ms >= 0)
  assert.deepEqual(entry, {
    timestamp: server.clock.now().toISOString(),
    auth_strategy: 'api_key',
    user_id: keys[0]?.id,
    email: '',
    status: 201,
    method: 'POST',
    path: '/profiles',
    route: '/profiles',
    domain: `127.0.0.1:${server.port}`,
    client_ip: '127.0.0.1',
    user_agent: 'Kernel/JS 0.84.0',
  })
})

test('entries contain no keys and no tokens', async () => {
  const owner = await server.project()
  const session = await owner.session()
  const token = new URL(session.cdp_ws_url).searchParams.get('jwt') ?? ''
  const other = newApiKey()
  const encoded = [...other].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join('')

  for (const path of [owner.key, other, encoded, token, `x%20${token}`, `%E0%A4%A${other}`]) {
    await owner.call('DELETE', `/org/api_keys/${path}?key=${other}`, undefined, {
      headers: { 'user-agent': `curl ${other}` },
    })
  }

  const text = JSON.stringify(await list(owner))
  for (const secret of [owner.key, other, encoded, token]) assert.ok(!text.includes(secret), secret)
  assert.match(text, /\[hidden\]/)
})

test('a server that is killed after a response has lost no entry', async () => {
  const owner = await server.project()
  for (let count = 0; count < 30; count += 1) await owner.call('POST', '/profiles', {})

  await server.crash()
  await server.start()

  assert.equal((await list(owner)).length, 30)
})

test('another organization sees nothing of it, and a key of one project may not read it', async () => {
  const owner = await server.project()
  const stranger = await server.project()
  const key = newApiKey()
  await owner.addKey(key, owner.id as ProjectId)
  await owner.call('POST', '/profiles', {})

  assert.deepEqual(await list(stranger), [])
  for (const path of ['/audit-logs', '/audit-logs/export/chunk']) {
    assert.equal((await owner.call('GET', `${path}?${query()}`, undefined, { key })).status, 403)
  }
})

test('a log is searched and filtered', async () => {
  const owner = await server.project()
  const key = newApiKey()
  await owner.addKey(key, owner.id as ProjectId)
  for (const [method, path, body, init] of [
    ['POST', '/profiles', { name: 'Alpha' }],
    ['PATCH', '/profiles/Alpha', { name: 'Beta' }],
    ['DELETE', '/profiles/nothing', undefined],
    ['DELETE', '/profiles/Beta', undefined, { key }],
  ] as const) {
    server.clock.advance(1)
    await owner.call(method, path, body, init)
  }
  const found = async (parameters: Record<string, string>) =>
    (await list(owner, parameters)).map(({ method, path }) => `${method} ${path}`)
  const all = await list(owner)
  const userId = all[0]?.user_id ?? ''

  assert.deepEqual(await found({}), [
    'DELETE /profiles/Beta',
    'DELETE /profiles/nothing',
    'PATCH /profiles/Alpha',
    'POST /profiles',
  ])
  assert.deepEqual(await found({ method: 'patch' }), ['PATCH /profiles/Alpha'])
  assert.deepEqual(await found({ exclude_method: 'delete,PATCH' }), ['POST /profiles'])
  assert.deepEqual(await found({ 'exclude_method[]': 'DELETE', search: 'ALPHA' }), ['PATCH /profiles/Alpha'])
  assert.deepEqual(await found({ search: '404' }), ['DELETE /profiles/nothing'])
  assert.deepEqual(await found({ search: userId }), ['DELETE /profiles/Beta'])
  assert.deepEqual(await found({ search: 'nothing', search_user_id: `${userId},x` }), [
    'DELETE /profiles/Beta',
    'DELETE /profiles/nothing',
  ])
  assert.equal((await found({ search: '127.0.0.1' })).length, 4)
  assert.deepEqual(await found({ auth_strategy: 'dashboard' }), [])
  assert.deepEqual(await found({ service: 'other' }), [])
  assert.equal((await found({ service: 'api', auth_strategy: 'api_key', search: '' })).length, 4)
  const second = all[2]?.timestamp ?? ''
  const third = all[1]?.timestamp ?? ''
  assert.deepEqual(
    await found({ start: second, end: third }),
    ['PATCH /profiles/Alpha'],
    'from the start, before the end',
  )
  assert.deepEqual(await found({ start: second.replace('Z', '+00:00'), end: third }), ['PATCH /profiles/Alpha'])
})

test('an invalid value is a 400 that names the field', async () => {
  const owner = await server.project()
  const days = (count: number) => new Date(server.clock.now().getTime() + count * 24 * hour * 1000).toISOString()
  const foreign = Buffer.from('[0,0,"x","y"]').toString('base64url')

  for (const [field, parameters] of [
    ['start', { start: 'yesterday' }],
    ['start', { start: '' }],
    ['end', { end: '' }],
    ['end', { start: days(0), end: days(0) }],
    ['end', { start: days(0), end: days(-1) }],
    ['end', { start: days(-31), end: days(0) }],
    ['exclude_method', { exclude_method: 'a,b,c,d,e,f,g,h,i,j,k' }],
    ['limit', { limit: '0' }],
    ['cursor', { cursor: 'x', page_token: 'x' }],
    ['cursor', { cursor: foreign, page_token: foreign }],
    ['cursor', { cursor: 'W10', page_token: 'W10' }],
  ] as const) {
    for (const path of ['/audit-logs', '/audit-logs/export/chunk']) {
      const { status, body } = await owner.call<Failure>('GET', `${path}?${query(parameters)}`)
      const name = field === 'cursor' && path === '/audit-logs' ? 'page_token' : field
      assert.equal(status, 400, `${path} ${JSON.stringify(parameters)}`)
      assert.ok(body.message.startsWith(name), body.message)
    }
  }
  assert.equal((await owner.call('GET', `/audit-logs?${query({ start: days(-29), end: days(1) })}`)).status, 200)
})

test('an export has every entry once, oldest first, and each cursor returns the same bytes again', async () => {
  const owner = await server.project()
  for (let count = 0; count < 25; count += 1) {
    if (count % 4 === 0) server.clock.advance(1)
    await owner.call('POST', '/profiles', {})
  }
  // Later requests of the export run after the clock has moved.
  const window = Object.fromEntries(new URLSearchParams(query()))

  const chunks = [await chunk(owner, { ...window, limit: '10' })]
  for (let next = chunks[0]?.next; next; next = chunks.at(-1)?.next) {
    await owner.call('POST', '/profiles', {})
    const parameters = { ...window, limit: '10', cursor: next }
    const first = await chunk(owner, parameters)
    await owner.call('DELETE', '/profiles/nothing')
    assert.deepEqual((await chunk(owner, parameters)).bytes, first.bytes)
    chunks.push(first)
  }

  assert.deepEqual(
    chunks.map(({ headers }) => [headers.get('x-row-count'), headers.get('x-has-more')]),
    [
      ['10', 'true'],
      ['10', 'true'],
      ['5', 'false'],
    ],
  )
  const whole = gunzipSync(Buffer.concat(chunks.map(({ bytes }) => bytes))).toString()
  const lines = whole
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.equal(new Set(lines.map(({ event_id }) => event_id)).size, 25)
  assert.deepEqual(
    lines.map(({ timestamp }) => timestamp),
    lines.map(({ timestamp }) => timestamp).toSorted(),
  )
  const plain = new Set((await chunk(owner, { ...window, format: 'jsonl' })).bytes.toString().split('\n'))
  assert.ok(
    whole.split('\n').every((line) => plain.has(line)),
    'the same lines without compression',
  )
  const other = `/audit-logs/export/chunk?${query({ ...window, cursor: chunks[0]?.next ?? '', method: 'POST' })}`
  assert.equal((await owner.call('GET', other)).status, 400, 'a cursor is good for its own filter')
})

test('an export without entries is an empty file', async () => {
  const owner = await server.project()

  const { bytes, headers } = await chunk(owner)

  assert.deepEqual([gunzipSync(bytes).length, headers.get('x-row-count')], [0, '0'])
})

test('entries are removed after the retention period', async () => {
  const owner = await server.project()
  await owner.call('POST', '/profiles', {})
  server.clock.advance(365 * 24 * hour)
  await owner.call('POST', '/profiles', {})
  await server.services.audit.flush()

  await server.services.audit.removeOld()
  assert.equal(await count(owner), 2)
  server.clock.advance(1)
  await server.services.audit.removeOld()
  assert.equal(await count(owner), 1)
})

async function count({ organizationId }: TestProject): Promise<number> {
  const { number } = await server.database
    .selectFrom('audit_entries')
    .select(({ fn }) => fn.countAll<number>().as('number'))
    .where('organization_id', '=', organizationId)
    .executeTakeFirstOrThrow()
  return number
}
