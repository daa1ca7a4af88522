import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import type { ProxyId } from '@berth/contract/common/ids.ts'
import type { CheckedProxy, ProxyRecord } from '@berth/contract/proxies/proxy.ts'
import { type ApiAnswer, type TestProject, TestServer } from '../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

const caBundle = await readFile(
  new URL('../../../../../e2e/testing/servers/certificates/ca.pem', import.meta.url),
  'utf8',
)
const leaf = await readFile(
  new URL('../../../../../e2e/testing/servers/certificates/server.pem', import.meta.url),
  'utf8',
)
const key = await readFile(
  new URL('../../../../../e2e/testing/servers/certificates/server-key.pem', import.meta.url),
  'utf8',
)
const secret = { username: 'us-er', password: 'p@ss:w%rd/é' }
const custom = { type: 'custom', config: { host: 'proxy.test', port: 3128 } }

const create = (project: TestProject, body: unknown) => project.call<ProxyRecord>('POST', '/proxies', body)
const messageOf = ({ body }: ApiAnswer<unknown>) => (body as { message: string }).message

test('a custom proxy is stored, and its secrets are never returned', async () => {
  const project = await server.project()
  const config = { host: 'Proxy.Test', port: 8443, ...secret, ca_bundle: caBundle }

  const created = await create(project, {
    type: 'custom',
    name: ' mine ',
    config,
    bypass_hosts: ['A.test', '*.B.test', 'a.test'],
  })
  const got = await project.call<ProxyRecord>('GET', `/proxies/${created.body.id}`)
  const row = await server.database
    .selectFrom('proxies')
    .selectAll()
    .where('id', '=', created.body.id as never)
    .execute()

  assert.equal(created.status, 201)
  assert.deepEqual(created.body, {
    id: created.body.id,
    type: 'custom',
    name: 'mine',
    protocol: 'https',
    bypass_hosts: ['a.test', '*.b.test'],
    config: { host: 'Proxy.Test', port: 8443, username: 'us-er', has_password: true, has_ca_bundle: true },
  })
  assert.deepEqual(got.body, created.body)
  assert.match(created.body.id, /^prx[a-z0-9]{21}$/)
  assert.doesNotMatch(JSON.stringify(row), /p@ss|CERTIFICATE/)
})

const good: Record<string, unknown> = {
  'SOCKS5 with any password': {
    ...custom,
    protocol: 'socks5',
    config: { ...custom.config, username: 'a:b', password: 'пароль €' },
  },
  'a user without a password': { ...custom, protocol: 'http', config: { ...custom.config, username: 'alone' } },
  'an IPv4 address': { type: 'custom', config: { host: '203.0.113.9', port: 1 } },
  'an IPv6 address': { type: 'custom', config: { host: '2001:db8::1', port: 65_535 } },
  'an unknown field': { ...custom, colour: 'red', config: { ...custom.config, colour: 'red' } },
  'a hundred bypass hosts': {
    ...custom,
    bypass_hosts: Array.from({ length: 100 }, (_none, index) => `h${index}.test`),
  },
  'a managed type without a config': { type: 'isp' },
  'a country in lower case': { type: 'isp', config: { country: 'de' } },
  'a place that there is': {
    type: 'residential',
    config: { country: 'US', state: 'ny', city: 'newyork', os: 'macos' },
  },
}
for (const [what, body] of Object.entries(good)) {
  test(`accepts ${what}`, async () => {
    const { status, body: answer } = await create(await server.project(), body)

    assert.equal(status, 201, JSON.stringify(answer))
  })
}

const withConfig = (config: unknown, type = 'custom') => ({ type, protocol: 'http', config })
const customWith = (config: object) => withConfig({ ...custom.config, ...config })
const residential = (config: object) => withConfig(config, 'residential')
const bad: Record<string, readonly [body: unknown, message: RegExp]> = {
  'no type': [{}, /^type: /],
  'an unknown type': [{ type: 'satellite' }, /^type: must be one of/],
  'an unknown protocol': [{ ...custom, protocol: 'socks4' }, /^protocol: /],
  'a custom proxy without a host': [withConfig({ port: 1 }), /^config.host: is needed/],
  'a custom proxy without a port': [withConfig({ host: 'a.test' }), /^config.port: is needed/],
  'a custom proxy without a config': [{ type: 'custom' }, /^config.host: is needed/],
  'a host with a scheme': [customWith({ host: 'http://a.test' }), /^config.host: /],
  'a host with a port': [customWith({ host: 'a.test:80' }), /^config.host: /],
  'a port that is none': [customWith({ port: 65_536 }), /^config.port: /],
  'a short password': [customWith({ password: '1234' }), /^config.password: .*5 characters/],
  'a long password': [customWith({ password: 'é'.repeat(128) }), /^config.password: .*255 bytes/],
  'a user that would end the header': [customWith({ username: 'a\nb' }), /^config.username: .*control/],
  'a user with a colon': [customWith({ username: 'a:b' }), /^config.username: .*colon/],
  'a certificate that is none': [customWith({ ca_bundle: 'nonsense' }), /^config.ca_bundle: .*PEM/],
  'a broken certificate': [
    customWith({ ca_bundle: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----' }),
    /^config.ca_bundle: .*cannot be read/,
  ],
  'a certificate of a server': [customWith({ ca_bundle: leaf }), /^config.ca_bundle: .*CA/],
  'a key among the certificates': [customWith({ ca_bundle: caBundle + key }), /^config.ca_bundle: .*no key/],
  'certificates above 64 KiB': [customWith({ ca_bundle: 'x'.repeat(65_537) }), /^config.ca_bundle: .*65536/],
  'a place for a custom proxy': [customWith({ country: 'US' }), /^config.country: is not for custom/],
  'a host for a managed proxy': [residential({ host: 'a.test' }), /^config.host: is not for residential/],
  'a city for isp': [withConfig({ country: 'US', city: 'x' }, 'isp'), /^config.city: is not for isp/],
  'a zip for mobile': [withConfig({ country: 'US', zip: '10001' }, 'mobile'), /^config.zip: is not for mobile/],
  'a country that is none': [residential({ country: 'XX' }), /^config.country: /],
  'a country that isp has not': [withConfig({ country: 'JP' }, 'isp'), /^config.country: is one of US, GB/],
  'the EU for residential': [residential({ country: 'EU' }), /^config.country: EU/],
  'a city without a country': [residential({ city: 'paris' }), /^config.country: is needed with city/],
  'a city in upper case': [residential({ country: 'US', city: 'NewYork' }), /^config.city: /],
  'a state outside the US': [residential({ country: 'FR', state: 'NY' }), /^config.state: .*US only/],
  'a long state': [residential({ country: 'US', state: 'NYC' }), /^config.state: /],
  'a zip outside the US': [residential({ country: 'FR', zip: '10001' }), /^config.zip: .*US only/],
  'a short zip': [residential({ country: 'US', zip: '1000' }), /^config.zip: /],
  'a zip with a city': [
    residential({ country: 'US', zip: '10001', city: 'newyork' }),
    /^config.zip: cannot be combined/,
  ],
  'an ASN with a state': [residential({ country: 'US', asn: 'AS1', state: 'NY' }), /^config.asn: cannot be combined/],
  'an ASN that is none': [residential({ country: 'US', asn: '15169' }), /^config.asn: /],
  'a type that the operator has not': [{ type: 'mobile' }, /^type: mobile proxies are not available/],
  'a country that the operator has not': [residential({ country: 'JP' }), /^config.country: .*Available are: FR, US\./],
  'a city that the operator has not': [
    residential({ country: 'US', city: 'boston' }),
    /^config.city: .*losangeles, newyork/,
  ],
  '101 bypass hosts': [
    { ...custom, bypass_hosts: Array.from({ length: 101 }, () => 'a.test') },
    /^bypass_hosts: .*100/,
  ],
  'a bypass host with a port': [{ ...custom, bypass_hosts: ['a.test:80'] }, /^bypass_hosts.0: /],
  'a bypass host with a path': [{ ...custom, bypass_hosts: ['a.test', 'a.test/x'] }, /^bypass_hosts.1: /],
  'a bypass host with a scheme': [{ ...custom, bypass_hosts: ['http://a.test'] }, /^bypass_hosts.0: /],
  'an address as a bypass host': [{ ...custom, bypass_hosts: ['10.0.0.1'] }, /^bypass_hosts.0: /],
  'another wildcard': [{ ...custom, bypass_hosts: ['a.*.test'] }, /^bypass_hosts.0: /],
  'a long bypass host': [{ ...custom, bypass_hosts: [`${'a.'.repeat(125)}test`] }, /^bypass_hosts.0: /],
  'a name of spaces': [{ ...custom, name: '  ' }, /^name: /],
  'a long name': [{ ...custom, name: 'n'.repeat(256) }, /^name: /],
}
for (const [what, [body, message]] of Object.entries(bad)) {
  test(`rejects ${what}`, async () => {
    const project = await server.project()

    const refused = await create(project, body)

    assert.equal(refused.status, 400)
    assert.match(messageOf(refused), message)
    assert.deepEqual((await project.call<ProxyRecord[]>('GET', '/proxies')).body, [])
  })
}

test('the error message contains no part of a password', async () => {
  const refused = await create(await server.project(), customWith({ password: 'sec\nret-1234' }))

  assert.equal(refused.status, 400)
  assert.doesNotMatch(JSON.stringify(refused.body), /ret-1234/)
})

test('finds proxies by text, by a whole id and by name, page by page', async () => {
  const project = await server.project()
  const names = ['Élan', 'elan', 'other', 'elan two']
  const ids: string[] = []
  for (const [index, name] of names.entries()) {
    server.clock.advance(1)
    const config = { host: `host-${index}.test`, port: 1 }
    ids.push((await create(project, { type: 'custom', name, config })).body.id)
  }
  const find = async (query: string) => {
    const { body } = await project.call<ProxyRecord[]>('GET', `/proxies?${query}`)
    return body.map(({ id }) => ids.indexOf(id))
  }

  assert.deepEqual(await find('query=ELAN'), [3, 1, 0])
  assert.deepEqual(await find('query=host-2'), [2])
  assert.deepEqual(await find(`query=${ids[1]}`), [1])
  assert.deepEqual(await find(`query=${ids[1]?.slice(0, -1)}`), [])
  assert.deepEqual(await find('name=ELAN'), [1, 0])
  assert.deepEqual(await find('name=ela'), [])
  const page = await project.call<ProxyRecord[]>('GET', '/proxies?limit=3&offset=0')
  assert.deepEqual(
    ['x-limit', 'x-offset', 'x-has-more', 'x-next-offset'].map((name) => page.headers.get(name)),
    ['3', '0', 'true', '3'],
  )
})

test('renames a proxy, even to an existing name, and changes nothing else', async () => {
  const project = await server.project()
  const { body: one } = await create(project, { ...custom, name: 'one' })
  const { body: two } = await create(project, { ...custom, name: 'two' })
  const updateProxy = (id: string, body: object) => project.call<ProxyRecord>('PATCH', `/proxies/${id}`, body)

  const renamed = await updateProxy(two.id, { name: ' one ' })
  const nameless = await updateProxy(one.id, {})

  assert.deepEqual([renamed.status, renamed.body], [200, { ...two, name: 'one' }])
  assert.equal(nameless.status, 400)
})

test('a proxy belongs to its project, and a deleted one is not found', async () => {
  const [project, stranger] = await Promise.all([server.project(), server.project()])
  const { body: proxy } = await create(project, { ...custom, config: { ...custom.config, ...secret } })
  const calls = [
    ['GET', ''],
    ['PATCH', '', { name: 'x' }],
    ['POST', '/check', {}],
    ['DELETE', ''],
  ] as const
  const statuses = async (by: TestProject) => {
    const found: number[] = []
    for (const [method, path, body] of calls)
      found.push((await by.call(method, `/proxies/${proxy.id}${path}`, body)).status)
    return found
  }

  assert.deepEqual(await statuses(stranger), [404, 404, 404, 404])
  assert.deepEqual((await stranger.call('GET', '/proxies')).body, [])
  const deletes = await Promise.all([1, 2, 3].map(() => project.call('DELETE', `/proxies/${proxy.id}`)))
  assert.deepEqual(deletes.map(({ status }) => status).toSorted(), [204, 404, 404])
  assert.deepEqual(await statuses(project), [404, 404, 404, 404])
  assert.deepEqual((await project.call('GET', '/proxies')).body, [])
  const row = await server.database
    .selectFrom('proxies')
    .selectAll()
    .where('id', '=', proxy.id as ProxyId)
    .executeTakeFirst()
  assert.deepEqual([row?.deleted_at !== null, row?.sealed_secrets], [true, null])
})

test('a proxy that an auth connection uses is not deleted', async () => {
  const project = await server.project()
  const { body: proxy } = await create(project, { ...custom, name: 'used' })
  const connect = { domain: 'site.test', profile_name: 'ann', proxy: { name: 'used' } }
  const { body: connection } = await project.call<{ id: string }>('POST', '/auth/connections', connect)
  const remove = () => project.call<{ code: string }>('DELETE', `/proxies/${proxy.id}`)

  const refused = await remove()
  await project.call('DELETE', `/auth/connections/${connection.id}`)
  const removed = await remove()

  assert.deepEqual([refused.status, refused.body.code], [400, 'resource_in_use'])
  assert.equal(removed.status, 204)
})

test('a check uses the proxy, and stores its result', async () => {
  const project = await server.project()
  const { body: proxy } = await create(project, {
    ...custom,
    protocol: 'http',
    config: { ...custom.config, ...secret },
  })
  const check = (body?: unknown) => project.call<CheckedProxy>('POST', `/proxies/${proxy.id}/check`, body)

  const first = await check()
  server.egress.nextResult = { outcome: 'failed', failure: 'proxy-timeout' }
  const byUrl = await check({ url: 'https://page.test/x' })
  const kept = await project.call<ProxyRecord>('GET', `/proxies/${proxy.id}`)
  server.clock.advance(5)
  const second = await check({})

  assert.deepEqual(first.body, {
    ...proxy,
    status: 'available',
    last_checked: first.body.last_checked,
    ip_address: '203.0.113.7',
    latency_ms: 7,
  })
  assert.deepEqual([byUrl.status, byUrl.body.status, kept.body.status], [200, 'unavailable', 'available'])
  assert.equal(second.body.status, 'unavailable')
  assert.notEqual(second.body.last_checked, first.body.last_checked)
  assert.deepEqual((await project.call('GET', `/proxies/${proxy.id}`)).body, second.body)
  const upstream = { protocol: 'http', host: 'proxy.test', port: 3128, ...secret }
  const probed = { upstreams: [upstream], bypass_hosts: [], is_operators: false }
  assert.deepEqual(JSON.parse(JSON.stringify(server.egress.probes.slice(-3))), [
    { proxy: probed, url: 'https://echo.test/ip', must_be_permitted: false },
    { proxy: probed, url: 'https://page.test/x', must_be_permitted: true },
    { proxy: probed, url: 'https://echo.test/ip', must_be_permitted: false },
  ])
})

test('a check accepts only public HTTP URLs', async () => {
  const project = await server.project()
  const { body: proxy } = await create(project, custom)
  const before = server.egress.probes.length

  for (const url of ['ftp://page.test/', 'page.test', '', 'http://user:pw@page.test/', 'javascript:1', 7]) {
    const { status } = await project.call('POST', `/proxies/${proxy.id}/check`, { url })
    assert.equal(status, 400, String(url))
  }
  assert.equal(server.egress.probes.length, before)
  server.egress.nextResult = { outcome: 'not_permitted' }
  const refused = await project.call('POST', `/proxies/${proxy.id}/check`, { url: 'http://10.0.0.1/' })

  assert.deepEqual([refused.status, messageOf(refused)], [400, 'url: must lead to a public address.'])
})
