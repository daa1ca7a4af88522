import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { sql } from 'kysely'
import { TestServer } from '../../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

interface ErrorAnswer {
  readonly code: string
  readonly message: string
}

test('of twenty concurrent creates with one name exactly one succeeds', async () => {
  const project = await server.project()

  const answers = await Promise.all(
    Array.from({ length: 20 }, () => project.call('POST', '/browsers', { name: 'one' })),
  )

  const statuses = answers.map(({ status }) => status)
  assert.equal(statuses.filter((status) => status === 200).length, 1)
  assert.equal(statuses.filter((status) => status === 409).length, 19)
  assert.equal((await project.call<unknown[]>('GET', '/browsers')).body.length, 1)
})

test('a name is free again as soon as its session is deleted', async () => {
  const project = await server.project()
  await project.session({ name: 'again' })

  await project.call('DELETE', '/browsers/again')

  assert.equal((await project.call('POST', '/browsers', { name: 'again' })).status, 200)
})

test('two projects may use one name, and neither sees the other', async () => {
  const [one, two] = [await server.project(), await server.project()]
  const session = await one.session({ name: 'shared' })

  assert.equal((await two.call('GET', '/browsers/shared')).status, 404)
  assert.equal((await two.call('GET', `/browsers/${session.session_id}`)).status, 404)
  assert.equal((await two.call('DELETE', `/browsers/${session.session_id}`)).status, 404)
  assert.equal((await two.call('POST', '/browsers', { name: 'shared' })).status, 200)
  assert.equal((await one.call('GET', '/browsers/shared')).body.session_id, session.session_id)
})

test('a failed start is an error, and leaves neither row nor machine', async () => {
  const project = await server.project()
  const before = await server.host.remains()
  server.host.failNextStart('no bubblewrap')

  const failed = await project.call<ErrorAnswer>('POST', '/browsers', { name: 'failing' })

  assert.equal(failed.status, 500)
  assert.equal(failed.body.code, 'session_start_failed')
  assert.match(failed.body.message, /no bubblewrap/)
  assert.equal(failed.headers.get('x-should-retry'), 'false')
  assert.deepEqual(await server.host.remains(), before)
  assert.deepEqual((await project.call<unknown[]>('GET', '/browsers?status=all')).body, [])
  assert.equal((await project.call('POST', '/browsers', { name: 'failing' })).status, 200)
})

test('policies with which the browser does not start are rejected', async () => {
  const project = await server.project()
  server.host.failNextStart('Chromium ended')

  const failed = await project.call<ErrorAnswer>('POST', '/browsers', {
    chrome_policy: { CookiesSessionOnlyForUrls: [1] },
  })

  assert.equal(failed.status, 400)
  assert.match(failed.body.message, /^chrome_policy: /)
})

test('an agent that fails before its first page ends the create', async () => {
  const project = await server.project()
  server.host.firstState = { state: 'failed', failure: 'Chromium does not run' }

  const failed = await project.call<ErrorAnswer>('POST', '/browsers', {})
  server.host.firstState = {}

  assert.equal(failed.status, 500)
  assert.match(failed.body.message, /Chromium does not run/)
})

test('a session can be deleted by its name while it starts', async () => {
  const project = await server.project()
  const before = await server.host.remains()
  server.host.hangNextStart()
  const creating = project.call<ErrorAnswer>('POST', '/browsers', { name: 'doomed' })
  let deleted = await project.call('DELETE', '/browsers/doomed')
  while (deleted.status === 404) {
    await delay(5)
    deleted = await project.call('DELETE', '/browsers/doomed')
  }

  const created = await creating

  assert.equal(deleted.status, 204)
  assert.equal(created.status, 409)
  assert.equal(created.body.code, 'session_ended_while_starting')
  assert.equal(created.headers.get('x-should-retry'), 'false')
  assert.deepEqual(await server.host.remains(), before)
  assert.equal((await project.call('POST', '/browsers', { name: 'doomed' })).status, 200)
})

test('a client that disconnects during its create leaves nothing behind', async () => {
  const project = await server.project()
  const before = await server.host.remains()
  server.host.hangNextStart()
  const leaving = request(`${server.url}/browsers`, {
    method: 'POST',
    headers: { authorization: `Bearer ${project.key}` },
  })
  leaving.on('error', () => {})
  leaving.end('')
  while (server.host.starts.size === 0) await delay(5)

  leaving.destroy()
  while (
    (await server.database.selectFrom('sessions').select('id').where('state', '=', 'starting').execute()).length > 0
  ) {
    await delay(5)
  }

  assert.deepEqual(await server.host.remains(), before)
  assert.deepEqual((await project.call<unknown[]>('GET', '/browsers?status=all')).body, [])
})

test('the machine is started with the requested options', async () => {
  const project = await server.project()
  const chrome_policy = { BookmarkBarEnabled: true }

  const session = await project.session({
    viewport: { width: 800, height: 600 },
    memory: '16GiB',
    kiosk_mode: true,
    start_url: 'about:blank',
    chrome_policy,
  })

  assert.deepEqual(server.host.specOf(session.session_id as SessionId), {
    id: (await server.row(session.session_id)).machine_id,
    headless: false,
    stealth: false,
    gpu: false,
    kioskMode: true,
    viewport: { width: 800, height: 600, refresh_rate: 60 },
    memory: '16GiB',
    chromePolicy: chrome_policy,
    awaitsProfile: false,
    awaitsExtensions: false,
    solvesCaptchas: false,
  })
  assert.deepEqual(server.host.agentOf(session.session_id as SessionId).navigations, ['about:blank'])
})

test('an impossible window size is clamped, and the record contains the requested size', async () => {
  const project = await server.project()
  const viewport = { width: Number.MAX_SAFE_INTEGER, height: 100, refresh_rate: 10 }

  const session = await project.session({ viewport })

  assert.deepEqual(session.viewport, viewport)
  assert.deepEqual(server.host.specOf(session.session_id as SessionId).viewport, { ...viewport, width: 10_000 })
})

test('the addresses of a session are those by which the caller reached berth', async () => {
  const project = await server.project()
  const { session_id } = await project.session({})
  const hostOf = async (host: string) => {
    const asking = request({
      port: server.port,
      path: `/browsers/${session_id}`,
      headers: { host, authorization: `Bearer ${project.key}` },
    })
    asking.end()
    const [response] = await once(asking, 'response')
    return ((await new Response(response).json()) as { base_url: string }).base_url
  }

  assert.equal(await hostOf('browsers.test:81'), `http://browsers.test:81/s/${session_id}`)
  assert.equal(await hostOf('[::1]:81'), `http://[::1]:81/s/${session_id}`)
  assert.equal(await hostOf('a"b'), `http://127.0.0.1:${server.port}/s/${session_id}`)
})

test('the configured public address is used for every caller', async () => {
  const project = await server.project()
  await server.crash()
  await server.start('https://browsers.example/berth')

  const session = await project.session({})
  await server.crash()
  await server.start()

  assert.equal(session.base_url, `https://browsers.example/berth/s/${session.session_id}`)
  assert.match(session.cdp_ws_url, /^wss:\/\/browsers\.example\/berth\/s\/\w+\/cdp\?jwt=/)
})

test('a machine that ends between its first page and the row of its session ends the session', {
  timeout: 30_000,
}, async () => {
  const project = await server.project()
  const before = await server.host.remains()
  const known = new Set(server.host.machines.keys())
  server.host.firstState = { state: 'starting' }
  const creating = project.call<ErrorAnswer>('POST', '/browsers', { name: 'short' })
  const machine = await eventually(async () => [...server.host.machines.values()].find(({ id }) => !known.has(id)))
  server.host.firstState = {}

  // The row is locked so that the session cannot become active before its machine has ended.
  await server.database.transaction().execute(async (database) => {
    await database.selectFrom('sessions').select('id').where('machine_id', '=', machine.id).forUpdate().execute()
    machine.agent.setState({ state: 'ready' })
    await eventually(async () => {
      const { rows } = await sql`
        select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`.execute(
        server.database,
      )
      return rows.length > 0 || undefined
    })
    machine.agent.kill()
    await machine.ended
  })

  const { status, body } = await creating
  assert.deepEqual([status, body.code, body.message.includes('its machine ended')], [500, 'session_start_failed', true])
  assert.deepEqual((await project.call('GET', '/browsers')).body, [])
  assert.deepEqual(await server.host.remains(), before)
})

async function eventually<Value>(look: () => Promise<Value | undefined>): Promise<Value> {
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    await delay(5)
  }
}
