import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { Berth } from './testing/berth.ts'

const berth = await Berth.start()
const client = await berth.client()
after(() => berth[Symbol.asyncDispose]())

const post = (
  body: string | Buffer | undefined,
  headers: Record<string, string> = { 'content-type': 'application/json' },
) => berth.request('/browsers', { method: 'POST', headers, ...(body !== undefined && { body }) })

for (const path of ['/health', '/health/ready', '/status', '/openapi.json', '/spec.json', '/docs', '/metrics']) {
  test(`${path} answers without a key`, async () => {
    const response = await fetch(`${berth.url}${path}`)

    assert.equal(response.status, 200)
    assert.ok((await response.text()).length > 0)
  })
}

test('the API document is that of the documentation', async () => {
  const served = await (await fetch(`${berth.url}/openapi.json`)).json()

  assert.deepEqual(served, JSON.parse(await readFile(join(import.meta.dirname, '../docs/openapi.json'), 'utf8')))
})

test('/health reports the state of database and driver', async () => {
  const health = (await (await fetch(`${berth.url}/health`)).json()) as Record<string, string>

  assert.deepEqual(
    { ...health, version: '' },
    { status: 'ok', version: '', database: 'ok', driver: 'ok', egress: 'ok' },
  )
})

test('everything else needs a valid key', async () => {
  const authorizations = [undefined, '', 'Bearer', 'Bearer sk_wrong', `Basic ${berth.apiKey}`, berth.apiKey]
  for (const authorization of authorizations) {
    const response = await fetch(`${berth.url}/browsers`, {
      headers: authorization === undefined ? {} : { authorization },
    })
    const body = (await response.json()) as { code: string; message: string }

    assert.equal(response.status, 401, `with ${authorization}`)
    assert.equal(body.code, 'unauthorized')
    assert.ok(body.message)
  }
})

test('project headers select the project, and any other is 404', async () => {
  const status = async (headers: Record<string, string>) => (await berth.request('/browsers', { headers })).status

  assert.equal(await status({ 'X-Kernel-Project': 'Default' }), 200)
  assert.equal(await status({ 'X-Kernel-Project': '', 'X-Kernel-Project-Id': '' }), 200)
  assert.equal(await status({ 'X-Kernel-Project': 'default' }), 404)
  assert.equal(await status({ 'X-Kernel-Project-Id': 'Default' }), 404)
  assert.equal(await status({ 'X-Kernel-Project': 'Default', 'X-Kernel-Project-Id': 'nope' }), 404)
})

test('an unknown path is 401 without a key', async () => {
  for (const path of ['/nope', '/browsers/a/b', '/'])
    assert.equal((await fetch(`${berth.url}${path}`)).status, 401, path)
})

test('an unknown path is a JSON 404', async () => {
  for (const path of ['/nope', '/browsers/a/b/c', '/%zz', '/s/x/y']) {
    const response = await berth.request(path)

    assert.ok([400, 404].includes(response.status), `${path}: ${response.status}`)
    assert.ok(((await response.json()) as { code: string }).code)
  }
})

test('of ten simultaneous creates with one name exactly one wins (case 27)', async () => {
  const outcomes = await Promise.allSettled(
    Array.from({ length: 10 }, () => client.browsers.create({ headless: true, name: 'race', timeout_seconds: 60 })),
  )

  const winners = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
  const losers = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
  assert.equal(winners.length, 1)
  for (const loser of losers) {
    assert.equal(loser.status, 409)
    assert.equal(loser.error.code, 'session_name_taken')
    assert.equal(loser.headers.get('x-should-retry'), 'false')
  }
  assert.equal((await client.browsers.retrieve('race')).session_id, winners[0]?.session_id)
  await client.browsers.deleteByID('race')
  const again = await client.browsers.create({ headless: true, name: 'race' })
  await client.browsers.deleteByID(again.session_id)
})

test('the official client walks through the pages of deleted sessions (case 28)', async () => {
  const made: string[] = []
  for (let index = 0; index < 4; index++) {
    const { session_id } = await client.browsers.create({ headless: true, tags: { walk: 'yes' } })
    await client.browsers.deleteByID(session_id)
    made.push(session_id)
  }

  const walked = await Array.fromAsync(client.browsers.list({ status: 'all', tags: { walk: 'yes' }, limit: 3 }))

  assert.deepEqual(
    walked.map(({ session_id }) => session_id),
    made.toReversed(),
  )
  const page = await berth.request('/browsers?status=deleted&tags[walk]=yes&limit=3&offset=3')
  assert.equal(page.headers.get('x-has-more'), 'false')
  assert.equal(page.headers.get('x-next-offset'), '0')
  assert.equal(((await page.json()) as unknown[]).length, 1)
})

test('invalid page values are refused or clamped, and are never a 500 (case 28)', async () => {
  const status = async (query: string) => (await berth.request(`/browsers?${query}`)).status

  for (const query of [
    'limit=0',
    'limit=-1',
    'limit=abc',
    'limit=1.5',
    'offset=-1',
    'offset=x',
    'status=odd',
    'region=mars',
  ]) {
    assert.equal(await status(query), 400, query)
  }
  for (const query of ['limit=1000000', 'limit=101', 'offset=100000', 'limit=', 'status=', 'include_deleted=true']) {
    assert.equal(await status(query), 200, query)
  }
})

test('a NUL character in a URL is refused, and the server continues', async () => {
  for (const path of ['/browsers?query=%00', '/browsers?tags[%00]=x', '/browsers/%00', '/browsers/a%00b']) {
    const response = await berth.request(path)

    assert.equal(response.status, 400, path)
    assert.equal(((await response.json()) as { code: string }).code, 'bad_request')
  }
  assert.equal((await fetch(`${berth.url}/health?x=%00`)).status, 200)
})

const manyTags = Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`k${index}`, 'v']))
const refused: readonly (readonly [what: string, body: string | Buffer, status: number, field: string])[] = [
  ['a cut-off body', '{"headless":tr', 400, 'JSON'],
  ['an array', '[]', 400, 'body'],
  ['a number', '1', 400, 'body'],
  ['a string', '"x"', 400, 'body'],
  ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 400, 'UTF-8'],
  ['100,000 levels', '['.repeat(100_000) + ']'.repeat(100_000), 400, 'nested'],
  ['50 MB', Buffer.alloc(50_000_000, 0x20), 413, 'larger'],
  ['an empty name', '{"name":""}', 400, 'name'],
  ['a name of 256 characters', JSON.stringify({ name: 'n'.repeat(256) }), 400, 'name'],
  ['a name of 100,000 characters', JSON.stringify({ name: 'n'.repeat(100_000) }), 400, 'name'],
  ['51 tags', JSON.stringify({ tags: manyTags }), 400, 'tags'],
  ['a tag __proto__', '{"tags":{"__proto__":"x"}}', 400, '__proto__'],
  ['a tag that is an emoji', '{"tags":{"😀":"x"}}', 400, 'tags'],
  ['an unpaired surrogate', '{"start_url":"\\ud800"}', 400, 'surrogate'],
  ['a NUL character', '{"start_url":"a\\u0000"}', 400, 'NUL'],
  ['a short timeout', '{"timeout_seconds":9}', 400, 'timeout_seconds'],
  ['a profile without id and name', '{"profile":{}}', 400, 'profile'],
  ['an unknown profile', '{"profile":{"name":"x"}}', 404, 'profile'],
  ['an extension without id and name', '{"extensions":[{}]}', 400, 'extensions'],
  ['an unknown extension', '{"extensions":[{"name":"x"}]}', 404, 'extension'],
  ['an empty proxy', '{"proxy":{}}', 400, 'proxy'],
  ['an unknown proxy', '{"proxy":{"name":"x"}}', 400, 'proxy'],
  ['a public range of private hosts', '{"network":{"private_hosts":["8.8.8.0/24"]}}', 400, 'private_hosts'],
  ['a vault without id and name', '{"vaults":[{}]}', 400, 'vaults'],
  ['an unknown vault', '{"vaults":[{"name":"x"}]}', 404, 'vault'],
  ['a GPU', '{"gpu":true}', 400, 'gpu'],
  ['a GPU without a screen', '{"gpu":true,"headless":true}', 400, 'gpu'],
  ['memory for headless', '{"memory":"8GiB","headless":true}', 400, 'memory'],
  ['another region', '{"region":"eu-west"}', 400, 'region'],
  ['an unknown region', '{"region":"mars"}', 400, 'region'],
  ['a managed policy', '{"chrome_policy":{"ProxyMode":"direct"}}', 400, 'ProxyMode'],
  ['telemetry that is not stored', '{"telemetry":{"enabled":true,"storage":{"enabled":false}}}', 400, 'storage'],
]
for (const [what, body, status, field] of refused) {
  test(`a create with ${what} is ${status} and creates nothing (case 29)`, async () => {
    const response = await post(body)
    const answer = (await response.json()) as { code: string; message: string }

    assert.equal(response.status, status)
    assert.ok(answer.code)
    assert.match(answer.message, new RegExp(field))
    assert.deepEqual(await (await berth.request('/browsers')).json(), [])
  })
}

for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
  test(`a body of type ${type} is 415`, async () => {
    assert.equal((await post('{}', { 'content-type': type })).status, 415)
  })
}

test('a body that claims to be compressed is 415', async () => {
  assert.equal((await post('{}', { 'content-type': 'application/json', 'content-encoding': 'gzip' })).status, 415)
})

for (const [what, body] of [
  ['no body', undefined],
  ['null', 'null'],
  ['{}', '{}'],
  [
    'unknown fields, a tag named constructor, and a name given twice',
    '{"colour":"red","tags":{"constructor":"x"},"name":"first","name":"second","headless":true}',
  ],
] as const) {
  test(`a create with ${what} creates a session`, async () => {
    const response = await post(body)
    const session = (await response.json()) as { session_id: string; name?: string; tags?: unknown }

    assert.equal(response.status, 200)
    if (what.startsWith('tags')) assert.deepEqual(session.tags, { constructor: 'x' })
    if (what.startsWith('a name')) assert.equal(session.name, 'second')
    await client.browsers.deleteByID(session.session_id)
  })
}

test('a malformed request gets a JSON response', async () => {
  const socket = connect(Number(new URL(berth.url).port), '127.0.0.1')
  socket.end('BREW /browsers\r\n\r\n')

  const answer = await text(socket)

  assert.match(answer, /^HTTP\/1\.1 400 /)
  assert.match(answer, /"code":"bad_request"/)
})

test('a websocket without a valid token is refused before the upgrade', async () => {
  const [first, second] = await Promise.all([
    client.browsers.create({ headless: true }),
    client.browsers.create({ headless: true }),
  ])
  const foreign = new URL(first.cdp_ws_url)
  foreign.search = new URL(second.cdp_ws_url).search
  const wrong = ['', '?jwt=', '?jwt=a.b.c', foreign.search].map((search) => `${foreign.pathname}${search}`)

  for (const path of wrong) assert.match(await upgrade(path), /^HTTP\/1\.1 401 /, path)
  assert.match(await upgrade('/s/nobody/else?jwt=x'), /^HTTP\/1\.1 404 /)
  await Promise.all([client.browsers.deleteByID(first.session_id), client.browsers.deleteByID(second.session_id)])
})

test('no key and no token reaches the log', async () => {
  const { session_id, cdp_ws_url } = await client.browsers.create({ headless: true })
  const token = new URL(cdp_ws_url).searchParams.get('jwt') ?? ''
  await upgrade(`/s/${session_id}/cdp?jwt=${token}x`)
  await fetch(`${berth.url}/browsers`, { headers: { authorization: 'Bearer sk_tried_and_wrong_key' } })
  await client.browsers.deleteByID(session_id)

  assert.ok(token.length > 0)
  for (const secret of [berth.apiKey, token, token.split('.')[2] ?? token, 'sk_tried_and_wrong_key']) {
    assert.ok(!berth.log.includes(secret))
  }
})

test('web pages of any origin may call, as the official client does there', async () => {
  const response = await fetch(`${berth.url}/browsers`, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://app.example',
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'authorization,x-kernel-project-id,x-stainless-lang',
    },
  })

  assert.equal(response.status, 204)
  assert.equal(response.headers.get('access-control-allow-origin'), '*')
  assert.match(response.headers.get('access-control-allow-headers') ?? '', /x-stainless-lang/)
})

/** Returns the head of the response to a WebSocket handshake. */
async function upgrade(path: string): Promise<string> {
  const socket = connect(Number(new URL(berth.url).port), '127.0.0.1')
  socket.write(
    `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
      'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  const [data] = await once(socket, 'data')
  socket.destroy()
  return String(data)
}
