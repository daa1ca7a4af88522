import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import { defaultPrivateHosts } from '@berth/contract/egress/private-hosts.ts'
import type { ProxyRecord } from '@berth/contract/proxies/proxy.ts'
import { type TestProject, TestServer, testStealthProxy } from '../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

const caBundle = await readFile(
  new URL('../../../../../e2e/testing/servers/certificates/ca.pem', import.meta.url),
  'utf8',
)
const hostOf = { one: 'one.test', two: 'two.test', trusted: 'trusted.test' }
type ProxyName = keyof typeof hostOf

/** A project with proxies, and helpers of these tests. */
async function projectWithProxies() {
  const project = await server.project()
  const ids = {} as Record<ProxyName, string>
  for (const [name, host] of Object.entries(hostOf)) {
    const config = { host, port: 3128, password: 'secret', ...(name === 'trusted' && { ca_bundle: caBundle }) }
    const { body } = await project.call<ProxyRecord>('POST', '/proxies', { type: 'custom', name, config })
    ids[name as ProxyName] = body.id
  }
  const withIds = (body: object) =>
    JSON.parse(JSON.stringify(body).replaceAll(/\$(\w+)/g, (_dollar, name: ProxyName) => ids[name]))
  return {
    project,
    ids,
    create: (body: object) => project.call('POST', '/browsers', withIds({ headless: true, ...body })),
    update: (id: string, body: object) => project.call('PATCH', `/browsers/${id}`, withIds(body)),
    /** `mode`, or the name of the proxy. */
    selected: ({ proxy }: Browser) =>
      proxy.mode ?? Object.keys(ids).find((name) => ids[name as ProxyName] === proxy.id),
  }
}

/** The hosts of the top-level proxy, or `direct`. */
function exitOf({ proxy }: EgressSettings): string {
  if (proxy === null) return 'closed'
  return proxy ? proxy.upstreams.map(({ host }) => host).join() : 'direct'
}

const settingsOf = async (session: Browser) => server.services.egress.settingsOf(await server.row(session.session_id))

interface Row {
  readonly rule: string
  readonly create?: object
  readonly update?: object
  /** The resulting selection and exit. */
  readonly to: readonly [selected: string, exit: string]
}

const rows: readonly Row[] = [
  { rule: 'nothing is the default', to: ['default', 'direct'] },
  { rule: 'nothing is the default of stealth', create: { stealth: true }, to: ['default', testStealthProxy.host] },
  { rule: 'mode direct has no proxy', create: { stealth: true, proxy: { mode: 'direct' } }, to: ['direct', 'direct'] },
  { rule: 'an id selects', create: { proxy: { id: '$one' } }, to: ['one', 'one.test'] },
  { rule: 'a name selects', create: { proxy: { name: 'two' } }, to: ['two', 'two.test'] },
  { rule: 'an id selects, stealth or not', create: { stealth: true, proxy: { id: '$one' } }, to: ['one', 'one.test'] },
  { rule: 'proxy_id selects', create: { proxy_id: '$one' }, to: ['one', 'one.test'] },
  { rule: 'proxy_id null is absent', create: { proxy_id: null, proxy: { id: '$two' } }, to: ['two', 'two.test'] },
  { rule: 'proxy_id empty is none', create: { proxy_id: '' }, to: ['default', 'direct'] },
  {
    rule: 'disable_default_proxy is direct',
    create: { stealth: true, disable_default_proxy: true },
    to: ['direct', 'direct'],
  },
  {
    rule: 'a proxy with certificates can be selected on create',
    create: { proxy: { id: '$trusted' } },
    to: ['trusted', 'trusted.test'],
  },

  { rule: 'absent leaves it', create: { proxy: { id: '$one' } }, update: {}, to: ['one', 'one.test'] },
  {
    rule: 'an update selects by id',
    create: { proxy: { id: '$one' } },
    update: { proxy: { id: '$two' } },
    to: ['two', 'two.test'],
  },
  { rule: 'an update selects by name', update: { proxy: { name: 'one' } }, to: ['one', 'one.test'] },
  {
    rule: 'an update to mode direct',
    create: { stealth: true },
    update: { proxy: { mode: 'direct' } },
    to: ['direct', 'direct'],
  },
  {
    rule: 'mode default restores the default after a selected proxy',
    create: { stealth: true, proxy: { id: '$one' } },
    update: { proxy: { mode: 'default' } },
    to: ['default', testStealthProxy.host],
  },
  { rule: 'proxy_id selects on update', update: { proxy_id: '$two' }, to: ['two', 'two.test'] },
  {
    rule: 'proxy_id null leaves it',
    create: { proxy_id: '$one' },
    update: { proxy_id: null },
    to: ['one', 'one.test'],
  },
  {
    rule: 'proxy_id empty removes it',
    create: { proxy_id: '$one' },
    update: { proxy_id: '' },
    to: ['default', 'direct'],
  },
  {
    rule: 'proxy_id empty restores the default of stealth',
    create: { stealth: true, proxy_id: '$one' },
    update: { proxy_id: '' },
    to: ['default', testStealthProxy.host],
  },
  {
    rule: 'disable_default_proxy true goes direct',
    create: { stealth: true },
    update: { disable_default_proxy: true },
    to: ['direct', 'direct'],
  },
  {
    rule: 'disable_default_proxy false restores the default',
    create: { stealth: true, disable_default_proxy: true },
    update: { disable_default_proxy: false },
    to: ['default', testStealthProxy.host],
  },
  {
    rule: 'disable_default_proxy false leaves a selected proxy',
    create: { proxy: { id: '$one' } },
    update: { disable_default_proxy: false },
    to: ['one', 'one.test'],
  },
  {
    rule: 'a proxy with certificates may be named again by the session that has it',
    create: { proxy: { id: '$trusted' } },
    update: { proxy: { name: 'trusted' } },
    to: ['trusted', 'trusted.test'],
  },
]
for (const { rule, create = {}, update, to } of rows) {
  test(`proxy: ${rule}`, async () => {
    const at = await projectWithProxies()

    const created = await at.create(create)
    const answer = update ? await at.update(created.body.session_id, update) : created
    const read = await at.project.call('GET', `/browsers/${created.body.session_id}`)

    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    assert.deepEqual([at.selected(answer.body), exitOf(await settingsOf(read.body))], to)
    assert.deepEqual([read.body.proxy, read.body.proxy_id], [answer.body.proxy, answer.body.proxy.id])
    assert.equal(read.body.disable_default_proxy, to[0] === 'direct')
    assert.equal(read.body.network, undefined)
    const told = server.egress.settings.get(read.body.session_id as SessionId)
    if (told) assert.equal(exitOf(told), to[1])
  })
}

const refused: Record<string, readonly [body: object, status: number, message: RegExp]> = {
  'an empty object': [{ proxy: {} }, 400, /^proxy: must have exactly one of mode, id and name/],
  'mode and id': [{ proxy: { mode: 'direct', id: '$one' } }, 400, /^proxy: must have exactly one/],
  'id and name': [{ proxy: { id: '$one', name: 'one' } }, 400, /^proxy: must have exactly one/],
  null: [{ proxy: null }, 400, /^proxy: /],
  'a text': [{ proxy: 'direct' }, 400, /^proxy: must be an object/],
  'an unknown mode': [{ proxy: { mode: 'fast' } }, 400, /^proxy.mode: /],
  'an empty id': [{ proxy: { id: '' } }, 400, /^proxy.id: /],
  'an unknown property': [{ proxy: { id: '$one', city: 'x' } }, 400, /city/],
  'an unknown id': [{ proxy: { id: 'prxunknown' } }, 404, /prxunknown/],
  'an unknown name': [{ proxy: { name: 'nobody' } }, 400, /^proxy.name: no active proxy/],
  'an ambiguous name': [{ proxy: { name: 'twice' } }, 400, /^proxy.name: several/],
  'an unknown proxy_id': [{ proxy_id: 'prxunknown' }, 404, /prxunknown/],
  'proxy with proxy_id': [
    { proxy: { mode: 'direct' }, proxy_id: '$one' },
    400,
    /^proxy: cannot be combined with proxy_id/,
  ],
  'proxy with an empty proxy_id': [{ proxy: { mode: 'direct' }, proxy_id: '' }, 400, /^proxy: cannot be combined/],
  'proxy with disable_default_proxy': [
    { proxy: { mode: 'direct' }, disable_default_proxy: false },
    400,
    /^proxy: cannot be combined with disable_default_proxy/,
  ],
  'disable_default_proxy with proxy_id': [
    { proxy_id: '$one', disable_default_proxy: true },
    400,
    /^disable_default_proxy: /,
  ],
  'disable_default_proxy as text': [{ disable_default_proxy: 'true' }, 400, /^disable_default_proxy: /],
}
test('rejects ambiguous proxies on create and on update, and does nothing', async () => {
  const at = await projectWithProxies()
  for (const _twice of [1, 2]) {
    const config = { host: 'x.test', port: 1 }
    await at.project.call('POST', '/proxies', { type: 'custom', name: 'twice', config })
  }
  const stranger = await projectWithProxies()
  const session = (await at.create({ proxy: { id: '$one' } })).body
  const cases = { ...refused, "another project's proxy": [{ proxy_id: stranger.ids.one }, 404, /prx/] as const }

  for (const [what, [body, status, message]] of Object.entries(cases)) {
    for (const answer of [await at.create(body), await at.update(session.session_id, body)]) {
      assert.equal(answer.status, status, what)
      assert.match((answer.body as unknown as { message: string }).message, message, what)
    }
  }

  const list = await at.project.call<Browser[]>('GET', '/browsers?status=all')
  assert.deepEqual(
    list.body.map(({ session_id, proxy_id }) => [session_id, proxy_id]),
    [[session.session_id, at.ids.one]],
  )
  assert.equal(server.egress.settings.has(session.session_id as SessionId), false)
})

test('a proxy with certificates must be set at the start', async () => {
  const at = await projectWithProxies()
  const own = ['b3du']

  const created = await at.create({ proxy: { id: '$trusted' }, chrome_policy: { CACertificates: own } })
  const plain = await at.create({})
  const late = await at.update(plain.body.session_id, { proxy_id: '$trusted' })

  const { CACertificates: trusted } = server.host.specOf(created.body.session_id as SessionId).chromePolicy
  const der = caBundle.replaceAll(/-----.*?-----|\s/g, '')
  assert.deepEqual(trusted, [...own, der])
  assert.deepEqual(created.body.chrome_policy, { CACertificates: own })
  assert.deepEqual(server.host.specOf(plain.body.session_id as SessionId).chromePolicy, {})
  assert.equal(late.status, 400)
  assert.match((late.body as unknown as { message: string }).message, /^proxy_id: .*CA bundle/)
})

test('when egress rejects the proxy, nothing of the update is applied', async () => {
  const at = await projectWithProxies()
  const { session_id } = (await at.create({ name: 'before', proxy: { id: '$one' } })).body
  server.egress.nextFailure = new Error('no answer')

  const failed = await at.update(session_id, { name: 'after', proxy: { id: '$two' } })

  const { body } = await at.project.call('GET', `/browsers/${session_id}`)
  assert.ok(failed.status >= 500)
  assert.deepEqual([body.name, at.selected(body)], ['before', 'one'])
})

test('sessions continue without a deleted proxy, and its routes are closed', async () => {
  const at = await projectWithProxies()
  const network = {
    proxy_routes: [
      { hosts: ['a.test'], proxy: { id: '$one' } },
      { hosts: ['b.test'], proxy: { id: '$two' } },
    ],
  }
  const user = (await at.create({ proxy: { id: '$one' }, network })).body
  const other = (await at.create({ proxy: { id: '$two' } })).body

  await at.project.call('DELETE', `/proxies/${at.ids.one}`)

  const told = server.egress.settings.get(user.session_id as SessionId)
  const { body } = await at.project.call('GET', `/browsers/${user.session_id}`)
  assert.equal(told && exitOf(told), 'direct')
  assert.deepEqual(
    told?.routes.map(({ proxy }) => proxy?.upstreams[0]?.host ?? null),
    [null, 'two.test'],
  )
  assert.equal(server.egress.settings.has(other.session_id as SessionId), false)
  assert.equal(body.proxy_id, at.ids.one)
})

test('sessions are found by the id of their proxy', async () => {
  const at = await projectWithProxies()
  const user = (await at.create({ proxy: { id: '$one' } })).body
  await at.create({ proxy: { id: '$two' } })

  const found = await at.project.call<Browser[]>('GET', `/browsers?query=${at.ids.one.slice(4)}`)

  assert.deepEqual(
    found.body.map(({ session_id }) => session_id),
    [user.session_id],
  )
})

test('network: routes are returned by id, and apply once the session is created, after its start page', async () => {
  const at = await projectWithProxies()
  const route = { hosts: ['*.Routed.test', 'exact.test', 'EXACT.test.'], proxy: { name: 'one' } }
  const network = { private_hosts: ['DB.internal:5432', '[FD00::1]', '10.0.0.0/8'], proxy_routes: [route] }
  let beforeItWasCreated: EgressSettings | undefined
  server.egress.onOpen = async (settings) => {
    beforeItWasCreated = settings
  }

  const { body } = await at.create({ network, proxy: { id: '$two' }, start_url: 'https://www.routed.test/x' })
  server.egress.onOpen = async () => {}

  const told = server.egress.settings.get(body.session_id as SessionId)
  assert.deepEqual(body.network, {
    private_hosts: ['db.internal:5432', '[fd00::1]', '10.0.0.0/8'],
    proxy_routes: [{ hosts: ['*.routed.test', 'exact.test'], proxy: { id: at.ids.one } }],
  })
  assert.deepEqual([beforeItWasCreated?.routes, beforeItWasCreated && exitOf(beforeItWasCreated)], [[], 'two.test'])
  assert.deepEqual(
    told?.routes.map(({ hosts, proxy }) => [hosts, proxy?.upstreams[0]?.host]),
    [[['*.routed.test', 'exact.test'], 'one.test']],
  )
  assert.deepEqual(told?.private_hosts, body.network?.private_hosts)
  assert.deepEqual(server.egress.gently.get(body.session_id as SessionId), { afterRequestTo: 'www.routed.test:443' })
  assert.deepEqual(await settingsOf(body), told)
})

const privateHosts: Record<string, readonly [asked: string[] | undefined, told: readonly string[]]> = {
  'absent are the private ranges': [undefined, defaultPrivateHosts],
  'replace the private ranges': [['db.internal'], ['db.internal']],
  'can be none at all': [[], []],
}
for (const [rule, [asked, told]] of Object.entries(privateHosts)) {
  test(`network: private hosts ${rule}`, async () => {
    const at = await projectWithProxies()
    const proxy_routes = [{ hosts: ['a.test'], proxy: { id: '$one' } }]

    const { body } = await at.create({ network: { proxy_routes, ...(asked && { private_hosts: asked }) } })

    assert.deepEqual((await settingsOf(body)).private_hosts, told)
    assert.deepEqual(body.network?.private_hosts, asked)
  })
}

const routeTo = (...hosts: string[]) => ({ hosts, proxy: { id: '$one' } })
const badNetworks: Record<string, readonly [network: object, message: RegExp]> = {
  '33 private hosts': [
    { private_hosts: Array.from({ length: 33 }, (_none, i) => `h${i}.test`) },
    /private_hosts: .*32/,
  ],
  'a long private host': [{ private_hosts: [`${'a.'.repeat(126)}test`] }, /private_hosts.0: .*255/],
  'a private host with a scheme': [
    { private_hosts: ['db.test', 'http://db.test'] },
    /private_hosts.1: must not have a scheme/,
  ],
  'a public range': [{ private_hosts: ['8.8.8.0/24'] }, /private_hosts.0: must be within/],
  'host bits': [{ private_hosts: ['10.0.0.1/8'] }, /private_hosts.0: must begin with .* 10.0.0.0/],
  'a wildcard over one label': [{ private_hosts: ['*.com'] }, /private_hosts.0: .*two labels/],
  'a wildcard over a public suffix': [{ private_hosts: ['*.co.uk'] }, /private_hosts.0: .*public suffix/],
  "a wildcard over a company's suffix": [{ private_hosts: ['*.github.io:443'] }, /private_hosts.0: .*public suffix/],
  '11 routes': [
    { proxy_routes: Array.from({ length: 11 }, (_none, i) => routeTo(`h${i}.test`)) },
    /proxy_routes: .*10/,
  ],
  'a route without hosts': [{ proxy_routes: [routeTo()] }, /proxy_routes.0.hosts: .*1 items/],
  'a route with 51 hosts': [
    { proxy_routes: [routeTo(...Array.from({ length: 51 }, (_none, i) => `h${i}.test`))] },
    /proxy_routes.0.hosts: .*50/,
  ],
  'a route host with a port': [{ proxy_routes: [routeTo('a.test:80')] }, /proxy_routes.0.hosts.0: .*without port/],
  'an address as a route host': [{ proxy_routes: [routeTo('a.test', '10.0.0.1')] }, /proxy_routes.0.hosts.1: /],
  'a long route host': [{ proxy_routes: [routeTo(`${'a.'.repeat(125)}test`)] }, /proxy_routes.0.hosts.0: .*253/],
  'a route host that catches all': [{ proxy_routes: [routeTo('*')] }, /proxy_routes.0.hosts.0: /],
  'a route without a proxy': [{ proxy_routes: [{ hosts: ['a.test'] }] }, /proxy_routes.0.proxy: /],
  'a route by a mode': [{ proxy_routes: [{ hosts: ['a.test'], proxy: { mode: 'direct' } }] }, /proxy_routes.0.proxy/],
  'a route by id and name': [
    { proxy_routes: [{ hosts: ['a.test'], proxy: { id: '$one', name: 'one' } }] },
    /proxy_routes.0.proxy: must have exactly one/,
  ],
  'a route with more': [{ proxy_routes: [{ ...routeTo('a.test'), ports: [80] }] }, /ports/],
  'a route by an unknown name': [
    { proxy_routes: [{ hosts: ['a.test'], proxy: { name: 'nobody' } }] },
    /^network.proxy_routes.0.proxy.name: no active proxy/,
  ],
  'one pattern in two routes': [
    { proxy_routes: [routeTo('x.test', '*.A.test'), routeTo('*.a.test.')] },
    /proxy_routes.1.hosts.0: is also in proxy_routes.0/,
  ],
  'a route host that is a private host': [
    { private_hosts: ['db.test:5432'], proxy_routes: [routeTo('DB.test')] },
    /proxy_routes.0.hosts.0: overlaps/,
  ],
  'a route host below a private wildcard': [
    { private_hosts: ['*.corp.test'], proxy_routes: [routeTo('a.b.corp.test')] },
    /proxy_routes.0.hosts.0: overlaps/,
  ],
  'a route wildcard above a private host': [
    { private_hosts: ['10.0.0.0/8', 'a.corp.test'], proxy_routes: [routeTo('y.test', '*.corp.test')] },
    /proxy_routes.0.hosts.1: overlaps/,
  ],
}
test('network: rejects every broken rule with the name of the entry', async () => {
  const at = await projectWithProxies()

  for (const [what, [network, message]] of Object.entries(badNetworks)) {
    const answer = await at.create({ network })
    assert.equal(answer.status, 400, what)
    assert.match((answer.body as unknown as { message: string }).message, message, what)
  }

  assert.deepEqual((await at.project.call<Browser[]>('GET', '/browsers?status=all')).body, [])
})

test('network: an unknown proxy of a route is not found', async () => {
  const at = await projectWithProxies()

  const unknown = await at.create({ network: { proxy_routes: [{ hosts: ['a.test'], proxy: { id: 'prxunknown' } }] } })
  const empty = await at.create({ network: {} })
  const wildcards = await at.create({
    network: { private_hosts: ['*.example.co.uk', '*.me.github.io', '*.corp.internal'] },
  })

  assert.equal(unknown.status, 404)
  assert.deepEqual([empty.status, empty.body.network], [200, undefined])
  assert.equal(wildcards.status, 200)
})

test('a server that adopts sessions after a crash keeps their network settings', async () => {
  const at = await projectWithProxies()
  const network = { proxy_routes: [{ hosts: ['a.test'], proxy: { id: '$two' } }] }
  const { body } = await at.create({ proxy: { id: '$one' }, network })
  const before = await settingsOf(body)

  await server.crash()
  await server.start()

  assert.deepEqual(await settingsOf(body), before)
  assert.equal(exitOf(before), 'one.test')
  assert.equal(before.routes.length, 1)
})

test('sessions get no connections when the operator’s proxies are removed', async () => {
  const project: TestProject = await server.project()
  const { body: proxy } = await project.call<ProxyRecord>('POST', '/proxies', {
    type: 'isp',
    config: { country: 'DE' },
  })
  const session = await project.session({ headless: true, proxy: { id: proxy.id } })
  const before = exitOf(await settingsOf(session))

  await server.database
    .updateTable('proxies')
    .set({ type: 'mobile' })
    .where('id', '=', proxy.id as never)
    .execute()

  assert.deepEqual([before, exitOf(await settingsOf(session))], ['isp-2.test', 'closed'])
})
