import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { after, afterEach, test } from 'node:test'
import type { ProjectId } from '@berth/contract/common/ids.ts'
import type { CredentialProvider } from '@berth/contract/credential-providers/credential-provider-endpoints.ts'
import { newApiKey } from '../../access/secrets.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'
import { ConnectServer } from '../../testing/services/connect-server.ts'

const connect = await ConnectServer.open()
const open = (limitMilliseconds: number) =>
  TestServer.open({ onePassword: { connectUrl: connect.url, limitMilliseconds } })
const server = await open(60_000)
/** A short time limit, for providers that do not respond. */
const impatient = await open(1_000)
afterEach(() => {
  connect.answer = undefined
  connect.requests.length = 0
})
after(async () => {
  await impatient.close()
  await server.close()
  await connect.close()
})

interface Failure {
  readonly code: string
  readonly message: string
}

interface TestResult {
  readonly success: boolean
  readonly vaults: readonly { readonly id: string; readonly name: string }[]
  readonly error?: string
}

interface Items {
  readonly items: readonly { readonly path: string; readonly urls: readonly string[] }[]
}

const create = async (owner: TestProject, body: object = {}): Promise<CredentialProvider> => {
  const whole = { provider_type: 'onepassword', name: 'vaults', token: 'good-token', ...body }
  const answer = await owner.call<CredentialProvider>('POST', '/org/credential_providers', whole)
  assert.equal(answer.status, 201, JSON.stringify(answer.body))
  return answer.body
}

const pathOf = ({ id }: { readonly id: string }, rest = '') => `/org/credential_providers/${id}${rest}`

test('a provider is created, read, listed, changed and deleted, and never returns its token', async () => {
  const owner = await server.project()

  const made = await create(owner, { name: ' vaults ' })
  assert.deepEqual([made.name, made.enabled, made.priority], ['vaults', true, 0])
  server.clock.advance(1)
  const changed = await owner.call<CredentialProvider>('PATCH', pathOf(made), {
    name: 'other',
    enabled: false,
    priority: -3,
    token: 'another-token',
  })
  const expected = {
    ...made,
    name: 'other',
    enabled: false,
    priority: -3,
    updated_at: server.clock.now().toISOString(),
  }
  assert.deepEqual([changed.status, changed.body], [200, expected])
  assert.deepEqual((await owner.call('GET', pathOf(made))).body, expected)
  assert.deepEqual((await owner.call('GET', '/org/credential_providers?query=OTH')).body, [expected])
  assert.deepEqual((await owner.call('GET', '/org/credential_providers?query=none')).body, [])

  assert.equal((await owner.call('DELETE', pathOf(made))).status, 204)
  for (const [method, rest, body] of [
    ['GET', ''],
    ['DELETE', ''],
    ['PATCH', '', {}],
    ['POST', '/test'],
    ['GET', '/items'],
  ] as const) {
    const gone = await owner.call<Failure>(method, pathOf(made, rest), body)
    assert.deepEqual([gone.status, gone.body.code], [404, 'credential_provider_not_found'], `${method} ${rest}`)
  }
})

test('names are unique in an organization', async () => {
  const owner = await server.project()
  const body = { provider_type: 'onepassword', name: 'one', token: 't' }

  const answers = await Promise.all(
    Array.from({ length: 10 }, () => owner.call<Failure>('POST', '/org/credential_providers', body)),
  )

  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, ...Array.from({ length: 9 }, () => 409)])
  const two = await create(owner, { name: 'two' })
  const refused = await owner.call<Failure>('PATCH', pathOf(two), { name: 'one' })
  assert.deepEqual([refused.status, refused.body.code], [409, 'credential_provider_name_taken'])
  await create(await server.project(), { name: 'one' })
})

test('an invalid value is a 400 that names the field and not the token', async () => {
  const owner = await server.project()
  const base = { provider_type: 'onepassword', name: 'x', token: 't' }

  for (const [field, body] of [
    ['provider_type', { ...base, provider_type: 'lastpass' }],
    ['name', { ...base, name: '  ' }],
    ['token', { ...base, token: '' }],
    ['token', { ...base, token: 'hunter2 hunter2' }],
    ['token', { ...base, token: 'hunter2\r\nx: y' }],
    ['cache_ttl_seconds', { ...base, cache_ttl_seconds: -1 }],
    ['body', { ...base, enabled: true }],
  ] as const) {
    const { status, body: failure } = await owner.call<Failure>('POST', '/org/credential_providers', body)
    assert.equal(status, 400, field)
    assert.ok(failure.message.startsWith(field), failure.message)
    assert.doesNotMatch(failure.message, /hunter2/)
  }
})

test('a test lists the vaults, and items have paths and addresses', async () => {
  const owner = await server.project()
  const made = await create(owner)

  const { body: result } = await owner.call<TestResult>('POST', pathOf(made, '/test'))
  assert.deepEqual(result, {
    success: true,
    vaults: [
      { id: 'vaulta', name: 'Work' },
      { id: 'vaultb', name: 'Home' },
    ],
  })
  const { body: list } = await owner.call<Items>('GET', pathOf(made, '/items'))
  assert.deepEqual(
    list.items.map(({ path, urls }) => [path, urls]),
    [
      ['Home/Bank', []],
      ['Work/Mail', ['https://mail.example.com/login']],
    ],
  )
})

test('items are cached for the time of the provider, and until it changes', async () => {
  const owner = await server.project()
  const made = await create(owner, { cache_ttl_seconds: 60 })
  const requests = async () => {
    connect.requests.length = 0
    assert.equal((await owner.call('GET', pathOf(made, '/items'))).status, 200)
    return connect.requests.length
  }

  assert.equal(await requests(), 3)
  server.clock.advance(59)
  assert.equal(await requests(), 0)
  server.clock.advance(1)
  assert.equal(await requests(), 3)
  await owner.call('PATCH', pathOf(made), { cache_ttl_seconds: 0 })
  assert.equal(await requests(), 3)
  assert.equal(await requests(), 3)
})

type Listener = (request: IncomingMessage, response: ServerResponse) => void

const faults: readonly (readonly [what: string, answer: Listener, error: RegExp])[] = [
  ['never answers', () => {}, /did not answer within 1 seconds/],
  [
    'sends byte by byte and never ends',
    (_request, response) => {
      const timer = setInterval(() => response.write(' '), 50)
      response.on('close', () => clearInterval(timer))
    },
    /did not answer within 1 seconds/,
  ],
  ['breaks the connection', (request) => request.socket.destroy(), /cannot be reached/],
  [
    'breaks off half way',
    (_request, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('[')
      setImmediate(() => response.destroy())
    },
    /cannot be reached/,
  ],
  ['refuses the token', (_request, response) => response.writeHead(401).end('{}'), /refuses the token/],
  ['forbids', (_request, response) => response.writeHead(403).end(), /refuses the token/],
  ['is broken', (_request, response) => response.writeHead(503).end('<html>'), /the status 503/],
  [
    'leads elsewhere',
    (_request, response) => response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end(),
    /the status 302/,
  ],
  ['speaks no JSON', (_request, response) => response.end('<html>'), /is not that of/],
  ['gives an object', (_request, response) => response.end('{"vaults": []}'), /is not that of/],
  ['gives null', (_request, response) => response.end('null'), /is not that of/],
  ['gives vaults without ids', (_request, response) => response.end('[{"name": "x"}]'), /is not that of/],
  ['gives ids that are numbers', (_request, response) => response.end('[{"id": 1, "name": "x"}]'), /is not that of/],
  ['gives 9 MiB', (_request, response) => response.end(`["${'x'.repeat(9 * 1024 ** 2)}"]`), /too large/],
]

for (const [what, answer, error] of faults) {
  test(`a provider that ${what} is reported within the time limit`, async () => {
    const isSlow = error.source.startsWith('did not answer')
    const owner = await (isSlow ? impatient : server).project()
    const made = await create(owner)
    connect.answer = answer

    const tested = await owner.call<TestResult>('POST', pathOf(made, '/test'))
    const listed = await owner.call<Failure>('GET', pathOf(made, '/items'))

    assert.deepEqual([tested.status, tested.body.success, tested.body.vaults], [200, false, []])
    assert.match(tested.body.error ?? '', error)
    assert.deepEqual([listed.status, listed.body.code], [502, 'credential_provider_failed'])
    assert.equal(listed.headers.get('x-should-retry'), 'false')
    assert.match(listed.body.message, error)
    for (const text of [tested.body.error, listed.body.message]) assert.ok(!text?.includes('good-token'))
  })
}

test('one failing vault fails the list, and no part of it is returned or cached', async () => {
  const owner = await server.project()
  const made = await create(owner)
  connect.items.delete('vaultb')

  const failed = await owner.call<Failure>('GET', pathOf(made, '/items'))
  connect.items.set('vaultb', [])

  assert.deepEqual([failed.status, failed.body.message], [502, 'The Connect server answers with the status 404.'])
  assert.equal((await owner.call<Items>('GET', pathOf(made, '/items'))).body.items.length, 1)
})

test('a provider that is deleted during a request is not found, and no data of it is returned', async () => {
  const owner = await server.project()
  const made = await create(owner)
  for (const [method, rest] of [
    ['GET', '/items'],
    ['POST', '/test'],
  ] as const) {
    const provider = rest === '/items' ? made : await create(owner, { name: 'second' })
    connect.answer = (_request, response) => {
      connect.answer = undefined
      void owner.call('DELETE', pathOf(provider)).then(() => response.end('[]'))
    }

    const { status, body } = await owner.call<Failure>(method, pathOf(provider, rest))

    assert.deepEqual([status, body.code], [404, 'credential_provider_not_found'], rest)
  }
})

test('a key of one project can only list providers', async () => {
  const owner = await server.project()
  const made = await create(owner)
  const key = newApiKey()
  await owner.addKey(key, owner.id as ProjectId)
  const statusOf = async (method: string, path: string, body?: unknown) =>
    (await owner.call(method, path, body, { key })).status

  assert.equal(await statusOf('GET', '/org/credential_providers'), 200)
  assert.equal(await statusOf('GET', pathOf(made)), 200)
  const body = { provider_type: 'onepassword', name: 'x', token: 't' }
  assert.equal(await statusOf('POST', '/org/credential_providers', body), 403)
  assert.equal(await statusOf('PATCH', pathOf(made), {}), 403)
  assert.equal(await statusOf('DELETE', pathOf(made)), 403)
  assert.equal(await statusOf('POST', pathOf(made, '/test')), 403)
  assert.equal(await statusOf('GET', pathOf(made, '/items')), 403)
})

test('without a Connect server a provider reports that it is missing', async () => {
  const without = await TestServer.open()
  try {
    const owner = await without.project()
    const made = await create(owner)

    const { body } = await owner.call<TestResult>('POST', pathOf(made, '/test'))

    assert.deepEqual([body.success, body.error?.includes('no 1Password Connect server')], [false, true])
  } finally {
    await without.close()
  }
})
