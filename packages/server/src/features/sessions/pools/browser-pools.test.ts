import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { BrowserPool } from '@berth/contract/browser-pools/browser-pool.ts'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { PoolId, SessionId } from '@berth/contract/common/ids.ts'
import { type TestProject, TestServer } from '../../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

interface Failure {
  readonly code: string
  readonly message: string
}

interface PoolBody {
  readonly size?: number
  readonly [field: string]: unknown
}

async function createPool(owner: TestProject, body: PoolBody = {}): Promise<BrowserPool> {
  const { status, body: pool } = await owner.call<BrowserPool>('POST', '/browser_pools', {
    size: 1,
    headless: true,
    ...body,
  })
  assert.equal(status, 201, JSON.stringify(pool))
  return pool
}

const fill = ({ id }: BrowserPool) => server.services.poolFiller.fill(id as PoolId, new AbortController().signal)

async function fullPool(owner: TestProject, body: PoolBody = {}): Promise<BrowserPool> {
  const pool = await createPool(owner, body)
  await fill(pool)
  return pool
}

const read = async (owner: TestProject, { id }: BrowserPool) =>
  (await owner.call<BrowserPool>('GET', `/browser_pools/${id}`)).body

const counts = async (owner: TestProject, pool: BrowserPool) => {
  const { available_count: available, acquired_count: acquired } = await read(owner, pool)
  return { available, acquired }
}

const acquire = (owner: TestProject, { id }: BrowserPool, body: unknown = { acquire_timeout_seconds: 0 }) =>
  owner.call<Browser>('POST', `/browser_pools/${id}/acquire`, body)

async function leased(owner: TestProject, pool: BrowserPool, body: object = {}): Promise<Browser> {
  const { status, body: browser } = await acquire(owner, pool, { acquire_timeout_seconds: 0, ...body })
  assert.equal(status, 200)
  return browser
}

const release = (owner: TestProject, { id }: BrowserPool, { session_id }: Browser, reuse?: boolean) =>
  owner.call<Failure>('POST', `/browser_pools/${id}/release`, { session_id, ...(reuse !== undefined && { reuse }) })

test('a pool returns its configuration with the defaults, and is found by id and by name', async () => {
  const owner = await server.project()

  const { status, body: created } = await owner.call<BrowserPool>('POST', '/browser_pools', { size: 2, name: 'two' })

  assert.equal(status, 201)
  assert.match(created.id, /^bpl[a-z0-9]{21}$/)
  assert.deepEqual(created, {
    id: created.id,
    name: 'two',
    available_count: 0,
    acquired_count: 0,
    created_at: created.created_at,
    browser_pool_config: {
      size: 2,
      name: 'two',
      fill_rate_per_minute: 25,
      timeout_seconds: 600,
      stealth: false,
      headless: false,
      kiosk_mode: false,
      refresh_on_profile_update: false,
    },
    extension_ids: [],
    region: 'us-east',
  })
  for (const key of [created.id, 'two'])
    assert.deepEqual((await owner.call('GET', `/browser_pools/${key}`)).body, created)
})

test('pools are listed newest first, by pages, by name and by text', async () => {
  const owner = await server.project()
  for (const name of ['Alpha', 'beta', 'alphabet']) {
    server.clock.advance(1)
    await createPool(owner, { name })
  }
  const names = async (query: string) => {
    const { body, headers } = await owner.call<BrowserPool[]>('GET', `/browser_pools?${query}`)
    return [...body.map(({ name }) => name), headers.get('x-has-more')]
  }

  assert.deepEqual(await names(''), ['alphabet', 'beta', 'Alpha', 'false'])
  assert.deepEqual(await names('limit=2'), ['alphabet', 'beta', 'true'])
  assert.deepEqual(await names('query=ALPHA'), ['alphabet', 'Alpha', 'false'])
  assert.deepEqual(await names('name=%C3%A1lpha'), ['Alpha', 'false'])
  assert.deepEqual(await names('region=eu-west'), ['false'])
})

const refusals: Readonly<Record<string, readonly [body: object, field: string]>> = {
  'no size': [{}, 'size'],
  'a size of 0': [{ size: 0 }, 'size'],
  'a size beyond all numbers': [{ size: 1e12 }, 'size'],
  'a negative fill rate': [{ size: 1, fill_rate_per_minute: -1 }, 'fill_rate_per_minute'],
  'a timeout that is too short': [{ size: 1, timeout_seconds: 9 }, 'timeout_seconds'],
  'a name with a space': [{ size: 1, name: 'a b' }, 'name'],
  'a name like an id': [{ size: 1, name: 'bpl012345678901234567890' }, 'name'],
  'proxy routes': [{ size: 1, network: { proxy_routes: [] } }, 'network.proxy_routes'],
  'allowed hosts': [{ size: 1, network: { allowed_hosts: ['example.com'] } }, 'network.allowed_hosts'],
  'an export of telemetry': [{ size: 1, telemetry: { enabled: true, export: {} } }, 'telemetry.export'],
  'refresh without a profile': [{ size: 1, refresh_on_profile_update: true }, 'refresh_on_profile_update'],
  'a profile without a selector': [{ size: 1, profile: {} }, 'profile'],
  'a GPU': [{ size: 1, gpu: true }, 'gpu'],
  'a proxy in two ways': [{ size: 1, proxy: { mode: 'direct' }, proxy_id: 'x' }, 'proxy'],
  vaults: [{ size: 1, vaults: [] }, 'vaults'],
  'memory that its kind cannot have': [{ size: 1, headless: true, memory: '16GiB' }, 'memory'],
  'another region': [{ size: 1, region: 'eu-west' }, 'region'],
}
for (const [what, [body, field]] of Object.entries(refusals)) {
  test(`a pool with ${what} is rejected`, async () => {
    const owner = await server.project()

    const { status, body: failure } = await owner.call<Failure>('POST', '/browser_pools', body)

    assert.equal(status, 400, JSON.stringify(failure))
    assert.match(failure.message, new RegExp(`^${field.replaceAll('.', '\\.')}\\b`))
    assert.deepEqual((await owner.call('GET', '/browser_pools')).body, [])
  })
}

test('a pool with an unknown profile, proxy or extension is rejected', async () => {
  const owner = await server.project()
  const named = { profile: { name: 'none' }, proxy_id: 'none', extensions: [{ name: 'none' }] }

  for (const [field, value] of Object.entries(named)) {
    const { status } = await owner.call('POST', '/browser_pools', { size: 1, [field]: value })
    assert.equal(status, 404, field)
  }
})

test('of many creates with one name one succeeds, and the name is free after the delete', async () => {
  const owner = await server.project()
  const create = () => owner.call<BrowserPool>('POST', '/browser_pools', { size: 1, name: 'one' })

  const answers = await Promise.all(Array.from({ length: 10 }, create))

  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, ...Array(9).fill(409)])
  assert.equal((await owner.call('DELETE', '/browser_pools/one')).status, 204)
  assert.equal((await create()).status, 201)
})

test('a pool occupies as many slots as its size, filled or not, leased or not', async () => {
  const owner = await server.project()
  await owner.call('PATCH', '/org/projects/Default/limits', { max_concurrent_sessions: 3 })
  const pool = await fullPool(owner, { size: 2 })
  await leased(owner, pool)

  const tooLarge = await owner.call<Failure>('POST', '/browser_pools', { size: 2 })
  const grown = await owner.call('PATCH', `/browser_pools/${pool.id}`, { size: 4 })
  const third = await owner.call('POST', '/browsers', { headless: true })
  const fourth = await owner.call('POST', '/browsers', { headless: true })

  assert.deepEqual([tooLarge.status, tooLarge.body.code], [429, 'session_limit_reached'])
  assert.ok(tooLarge.headers.get('retry-after'))
  assert.deepEqual([grown.status, third.status, fourth.status], [429, 200, 429])
  assert.equal((await read(owner, pool)).browser_pool_config.size, 2)
  await owner.call('DELETE', `/browser_pools/${pool.id}`, { force: true })
  assert.equal((await owner.call('POST', '/browsers', { headless: true })).status, 200)
})

test('unleased browsers are in no list and at no path, running or ended', async () => {
  const owner = await server.project()
  const pool = await fullPool(owner)
  const row = await server.database
    .selectFrom('sessions')
    .select(['id', 'created_at'])
    .where('pool_id', '=', pool.id as PoolId)
    .executeTakeFirstOrThrow()
  const list = async () => (await owner.call<Browser[]>('GET', '/browsers?status=all')).body
  const find = async (method: string) =>
    (await owner.call(method, `/browsers/${row.id}?include_deleted=true`, method === 'PATCH' ? {} : undefined)).status

  assert.deepEqual([await list(), await find('GET'), await find('PATCH'), await find('DELETE')], [[], 404, 404, 404])
  await owner.call('POST', `/browser_pools/${pool.id}/flush`)
  assert.deepEqual([await list(), await find('GET')], [[], 404])
})

test('a leased browser is a session of its caller, with the pool and the settings of the lease', async () => {
  const owner = await server.project()
  const pool = await fullPool(owner, { name: 'warm', timeout_seconds: 77, viewport: { width: 800, height: 600 } })

  const browser = await leased(owner, pool, { name: 'mine', tags: { a: 'b' }, start_url: 'https://start.test/' })

  assert.deepEqual(
    [browser.pool, browser.name, browser.tags, browser.timeout_seconds, browser.viewport.width, browser.start_url],
    [{ id: pool.id, name: 'warm' }, 'mine', { a: 'b' }, 77, 800, 'https://start.test/'],
  )
  const found = await owner.call('GET', '/browsers/mine')
  assert.equal(found.body.session_id, browser.session_id)
  const { body: listed } = await owner.call<Browser[]>('GET', '/browsers?query=WAR')
  assert.deepEqual(listed[0]?.pool, { id: pool.id, name: 'warm' })
  assert.deepEqual(await counts(owner, pool), { available: 0, acquired: 1 })
})

test('a browser that is released for reuse keeps nothing of the lease, and its URLs are invalid', async () => {
  const owner = await server.project()
  const pool = await fullPool(owner, { telemetry: { enabled: true } })
  const first = await leased(owner, pool, { name: 'mine', tags: { a: 'b' }, telemetry: { enabled: false } })
  await owner.call('PATCH', `/browsers/${first.session_id}`, { proxy: { mode: 'direct' } })
  const socket = new WebSocket(first.cdp_ws_url)
  await new Promise((resolve) => socket.addEventListener('open', resolve))
  const closed = new Promise((resolve) => socket.addEventListener('close', resolve))

  assert.equal((await release(owner, pool, first)).status, 204)

  await closed
  assert.deepEqual(await counts(owner, pool), { available: 1, acquired: 0 })
  assert.equal((await owner.call('GET', `/browsers/${first.session_id}`)).status, 404)
  const second = await leased(owner, pool)
  assert.equal(second.session_id, first.session_id)
  assert.deepEqual([second.name, second.tags, second.proxy], [undefined, undefined, { mode: 'default' }])
  assert.equal(second.telemetry?.browser.control?.enabled, true)
  assert.notEqual(second.cdp_ws_url, first.cdp_ws_url)
  const discovery = async ({ cdp_ws_url, base_url }: Browser) =>
    (await fetch(`${base_url}/json/version?jwt=${new URL(cdp_ws_url).searchParams.get('jwt')}`)).status
  assert.deepEqual([await discovery(first), await discovery(second)], [401, 200])
})

test('the agent of a released browser closes the connections of its clients before berth cuts the remaining ones', async () => {
  const owner = await server.project()
  const pool = await fullPool(owner, { telemetry: { enabled: true } })
  const browser = await leased(owner, pool)
  const socket = new WebSocket(browser.cdp_ws_url)
  await new Promise((resolve) => socket.addEventListener('open', resolve))
  const closed = new Promise((resolve) => socket.addEventListener('close', resolve))
  const agent = server.host.agentOf(browser.session_id as SessionId)
  const statesThen: number[] = []
  agent.onEndClients = () => void statesThen.push(socket.readyState)

  await release(owner, pool, browser)

  agent.onEndClients = () => {}
  assert.deepEqual(statesThen, [WebSocket.OPEN])
  await closed
})

test('a late notification of a release does not cut the next caller', async () => {
  const owner = await server.project()
  const pool = await fullPool(owner)
  await release(owner, pool, await leased(owner, pool))
  const browser = await leased(owner, pool)
  const socket = new WebSocket(browser.cdp_ws_url)
  await new Promise((resolve) => socket.addEventListener('open', resolve))
  const answer = new Promise((resolve) => socket.addEventListener('message', ({ data }) => resolve(data)))

  await server.services.leaseReturns.finish(browser.session_id as SessionId)
  socket.send('still here')

  assert.equal(
    await Promise.race([answer, new Promise((resolve) => socket.addEventListener('close', resolve))]),
    'still here',
  )
  socket.close()
})

test('a browser is released once, by its id, to its own pool', async () => {
  const owner = await server.project()
  const [pool, other] = [await fullPool(owner), await fullPool(owner)]
  const browser = await leased(owner, pool)
  const ordinary = await owner.session()

  assert.equal((await release(owner, other, browser)).status, 404)
  assert.equal((await release(owner, pool, ordinary)).status, 404)
  const answers = await Promise.all([release(owner, pool, browser), release(owner, pool, browser)])
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [204, 404])
})

test('a browser that is not reused is ended and replaced', async () => {
  const owner = await server.project()
  const pool = await fullPool(owner)
  const first = await leased(owner, pool)

  assert.equal((await release(owner, pool, first, false)).status, 204)

  assert.equal(server.host.has(first.session_id as never), false)
  assert.deepEqual(await counts(owner, pool), { available: 0, acquired: 0 })
  await fill(pool)
  assert.notEqual((await leased(owner, pool)).session_id, first.session_id)
})

const ends: Readonly<Record<string, (owner: TestProject, browser: Browser) => Promise<unknown>>> = {
  'is deleted': (owner, { session_id }) => owner.call('DELETE', `/browsers/${session_id}`),
  'has been idle for its time': async (_owner, { session_id }) => {
    server.host.agentOf(session_id as never).setState({ idle_since: server.clock.now().getTime() })
    server.clock.advance(601)
    await server.reap()
  },
  'has lost its machine': async (_owner, { session_id }) => {
    server.host.agentOf(session_id as never).kill()
    await until(async () => (await server.row(session_id)).state === 'deleted')
  },
}
for (const [what, end] of Object.entries(ends)) {
  test(`a leased browser that ${what} leaves the pool and is replaced`, async () => {
    const owner = await server.project()
    const pool = await fullPool(owner)
    const browser = await leased(owner, pool)

    await end(owner, browser)

    assert.deepEqual(await counts(owner, pool), { available: 0, acquired: 0 })
    await fill(pool)
    assert.deepEqual(await counts(owner, pool), { available: 1, acquired: 0 })
    const { body } = await owner.call<Browser>('GET', `/browsers/${browser.session_id}?include_deleted=true`)
    assert.equal(body.usage_status, 'ready')
  })
}

test('the timeout of a browser starts with its lease', async () => {
  const owner = await server.project()
  server.host.firstState = { idle_since: server.clock.now().getTime() }
  const pool = await fullPool(owner, { timeout_seconds: 10 })
  server.host.firstState = {}

  server.clock.advance(1000)
  await server.reap()
  assert.deepEqual(await counts(owner, pool), { available: 1, acquired: 0 })
  await leased(owner, pool)
  server.clock.advance(9)
  await server.reap()
  assert.deepEqual(await counts(owner, pool), { available: 0, acquired: 1 })
  server.clock.advance(2)
  await server.reap()
  assert.deepEqual(await counts(owner, pool), { available: 0, acquired: 0 })
})

test('the fill rate limits replacements per minute, but not the first browsers', async () => {
  const owner = await server.project()
  const pool = await fullPool(owner, { size: 4, fill_rate_per_minute: 50 })
  const available = async () => (await counts(owner, pool)).available
  assert.equal(await available(), 4)
  await owner.call('POST', `/browser_pools/${pool.id}/flush`)

  const afterEachMinute: number[] = []
  for (let minute = 0; minute < 3; minute += 1) {
    await fill(pool)
    afterEachMinute.push(await available())
    server.clock.advance(60)
  }

  assert.deepEqual(afterEachMinute, [2, 4, 4])
})

test('a pool without a fill rate builds nothing by itself', async () => {
  const owner = await server.project()
  const pool = await fullPool(owner, { fill_rate_per_minute: 0 })

  assert.deepEqual(await counts(owner, pool), { available: 0, acquired: 0 })
  await owner.call('PATCH', `/browser_pools/${pool.id}`, { fill_rate_per_minute: 100 })
  await fill(pool)
  assert.deepEqual(await counts(owner, pool), { available: 1, acquired: 0 })
})

test('a flush and a smaller size end ready browsers, and no leased ones', async () => {
  const owner = await server.project()
  const pool = await fullPool(owner, { size: 3 })
  const browser = await leased(owner, pool)

  await owner.call('PATCH', `/browser_pools/${pool.id}`, { size: 1 })
  await fill(pool)
  assert.deepEqual(await counts(owner, pool), { available: 0, acquired: 1 })
  await owner.call('PATCH', `/browser_pools/${pool.id}`, { size: 2, fill_rate_per_minute: 100 })
  await fill(pool)
  assert.deepEqual(await counts(owner, pool), { available: 1, acquired: 1 })
  await owner.call('POST', `/browser_pools/${pool.id}/flush`)

  assert.deepEqual(await counts(owner, pool), { available: 0, acquired: 1 })
  assert.equal((await owner.call('GET', `/browsers/${browser.session_id}`)).status, 200)
})

test('a browser that is built while its pool is flushed is not leased', async () => {
  const owner = await server.project()
  const pool = await createPool(owner)
  const started: string[] = []
  server.host.onStart = async ({ id }) => {
    if (started.push(id) === 1) await owner.call('POST', `/browser_pools/${pool.id}/flush`)
  }

  await fill(pool)
  server.host.onStart = async () => {}

  const { session_id } = await leased(owner, pool)
  assert.deepEqual([(await server.row(session_id)).machine_id, started.length], [started[1], 2])
})

test('changes apply to browsers that are built later, unless ready ones are discarded', async () => {
  const owner = await server.project()
  const pool = await fullPool(owner, { size: 2 })
  const path = `/browser_pools/${pool.id}`
  const first = await leased(owner, pool)

  await owner.call('PATCH', path, { kiosk_mode: true, timeout_seconds: 77 })
  const second = await leased(owner, pool)
  assert.deepEqual([first.kiosk_mode, second.kiosk_mode], [false, false])
  assert.deepEqual([first.timeout_seconds, second.timeout_seconds], [600, 77], 'the timeout is that of the pool')
  await release(owner, pool, second)
  await owner.call('PATCH', path, { discard_all_idle: true })
  await fill(pool)

  const third = await leased(owner, pool)
  assert.equal(third.kiosk_mode, true)
  assert.equal((await owner.call('GET', `/browsers/${first.session_id}`)).status, 200)
})

test('an update merges: absent fields stay, empty ones are removed', async () => {
  const owner = await server.project()
  await owner.call('POST', '/profiles', { name: 'p' })
  const proxy = await owner.call<{ id: string }>('POST', '/proxies', {
    type: 'custom',
    config: { host: 'proxy.test', port: 80 },
  })
  const pool = await createPool(owner, {
    name: 'kept',
    profile: { name: 'p' },
    proxy_id: proxy.body.id,
    chrome_policy: { HomepageLocation: 'https://a.test' },
    start_url: 'https://a.test',
    telemetry: { enabled: true },
    network: { private_hosts: ['10.0.0.1'] },
    viewport: { width: 800, height: 600 },
  })
  const update = async (body: object) => {
    const { status, body: updated } = await owner.call<BrowserPool>('PATCH', `/browser_pools/${pool.id}`, body)
    assert.equal(status, 200, JSON.stringify(updated))
    return updated
  }

  assert.equal(pool.browser_pool_config.refresh_on_profile_update, true)
  assert.ok(pool.profile_id)
  assert.deepEqual(await update({}), pool)
  assert.deepEqual(await update({ name: '' }), pool)
  const cleared = await update({
    profile: { id: '' },
    proxy_id: '',
    chrome_policy: {},
    start_url: '',
    telemetry: { enabled: false },
    network: {},
  })
  const {
    profile: _,
    proxy_id: __,
    chrome_policy: ___,
    start_url,
    telemetry,
    network,
    ...rest
  } = pool.browser_pool_config
  assert.deepEqual(cleared.browser_pool_config, { ...rest, refresh_on_profile_update: false })
  assert.equal(cleared.profile_id, undefined)
  assert.deepEqual((await update({ network: { private_hosts: [] } })).browser_pool_config.network, {
    private_hosts: [],
  })
  assert.equal((await update({ profile: { name: 'p' } })).browser_pool_config.refresh_on_profile_update, true)
  assert.equal(
    (await update({ profile: { name: 'p' }, refresh_on_profile_update: false })).browser_pool_config
      .refresh_on_profile_update,
    false,
  )
  assert.equal((await update({ profile: { name: 'p' } })).browser_pool_config.refresh_on_profile_update, false)
  const refused = await owner.call('PATCH', `/browser_pools/${pool.id}`, {
    profile: { id: '' },
    refresh_on_profile_update: true,
  })
  assert.equal(refused.status, 400)
})

test('simultaneous updates of one pool all take effect', async () => {
  const owner = await server.project()
  const pool = await createPool(owner)
  const updates = [{ timeout_seconds: 99 }, { kiosk_mode: true }, { size: 2 }, { fill_rate_per_minute: 7 }]

  const answers = await Promise.all(updates.map((body) => owner.call('PATCH', `/browser_pools/${pool.id}`, body)))

  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 200],
  )
  const { timeout_seconds, kiosk_mode, size, fill_rate_per_minute } = (await read(owner, pool)).browser_pool_config
  assert.deepEqual([timeout_seconds, kiosk_mode, size, fill_rate_per_minute], [99, true, 2, 7])
})

test('a pool with leases is only deleted with force, and its browsers are ended', async () => {
  const owner = await server.project()
  const pool = await fullPool(owner, { size: 2 })
  const browser = await leased(owner, pool)
  const path = `/browser_pools/${pool.id}`

  const refused = await owner.call<Failure>('DELETE', path)
  assert.deepEqual([refused.status, refused.body.code], [400, 'pool_has_leases'])
  assert.equal((await owner.call('DELETE', path, { force: true })).status, 204)

  assert.equal((await owner.call('GET', path)).status, 404)
  assert.equal((await owner.call('GET', `/browsers/${browser.session_id}`)).status, 404)
  await server.reap()
  const left = await server.database
    .selectFrom('sessions')
    .select('id')
    .where('pool_id', '=', pool.id as PoolId)
    .where('state', '<>', 'deleted')
    .execute()
  assert.deepEqual(left, [])
})

test('saving the profile of a pool replaces its ready browsers, and a deleted profile is not used any more', async () => {
  const owner = await server.project()
  await owner.call('POST', '/profiles', { name: 'shared' })
  const pool = await fullPool(owner, { size: 2, profile: { name: 'shared' } })
  const kept = await fullPool(owner, { profile: { name: 'shared' }, refresh_on_profile_update: false })
  await leased(owner, pool)

  const saving = await owner.session({ headless: true, profile: { name: 'shared', save_changes: true } })
  await owner.call('DELETE', `/browsers/${saving.session_id}`)
  await until(async () => (await counts(owner, pool)).available === 0)

  assert.deepEqual(await counts(owner, pool), { available: 0, acquired: 1 })
  assert.deepEqual(await counts(owner, kept), { available: 1, acquired: 0 })
  await fill(pool)
  const browser = await leased(owner, pool)
  assert.deepEqual([browser.profile?.name, browser.profile_save_changes], ['shared', false])
  const { body: failure } = await owner.call<Failure>('PATCH', `/browsers/${browser.session_id}`, {
    profile: { name: 'shared' },
  })
  assert.equal(failure.code, 'profile_already_loaded')
  await owner.call('DELETE', '/profiles/shared')
  assert.equal((await read(owner, pool)).browser_pool_config.profile, undefined)
})

/** The server continues after the response. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 30_000
  while (!(await condition())) {
    assert.ok(performance.now() < deadline, 'it did not happen within 30 s')
    await delay(10)
  }
}
