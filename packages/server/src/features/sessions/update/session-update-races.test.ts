import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { KeyedQueue } from '@berth/runtime/async/keyed-queue.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import type { FakeAgent } from '../../../testing/fakes/fake-agent.ts'
import { TestServer } from '../../../testing/server-test.ts'
import { LifecycleEvents } from '../machines/lifecycle-events.ts'
import { SessionResolver } from '../records/resolve-session.ts'
import { SessionStore } from '../records/session-store.ts'
import { SessionUpdater } from './update-session.ts'

const server = await TestServer.open()
after(() => server.close())

test('of ten sessions that are concurrently renamed to one name, one gets it', async () => {
  const project = await server.project()
  const sessions = await Promise.all(Array.from({ length: 10 }, () => project.session()))
  const viewport = { width: 640, height: 480 }

  const answers = await Promise.all(
    sessions.map(({ session_id }) => project.call('PATCH', `/browsers/${session_id}`, { name: 'one', viewport })),
  )

  const winners = answers.filter(({ status }) => status === 200)
  const losers = answers.filter(({ status }) => status === 409)
  assert.deepEqual([winners.length, losers.length], [1, 9])
  for (const { headers, body } of losers) {
    assert.equal(headers.get('x-should-retry'), 'false')
    assert.equal((body as unknown as { code: string }).code, 'session_name_taken')
  }
  const winner = winners[0]?.body as Browser
  assert.deepEqual(steady((await project.call('GET', '/browsers/one')).body), steady(winner))
  for (const session of sessions) {
    const isWinner = session.session_id === winner.session_id
    assert.equal((await project.call('GET', `/browsers/${session.session_id}`)).body.name, isWinner ? 'one' : undefined)
    const size = agentOf(session).viewports.at(-1)?.width ?? 1920
    assert.equal(size, isWinner ? 640 : 1920, 'who does not get the name keeps its size')
  }

  await project.call('DELETE', '/browsers/one')
  const next = sessions.find(({ session_id }) => session_id !== winner.session_id)
  assert.equal((await project.call('PATCH', `/browsers/${next?.session_id}`, { name: 'one' })).status, 200)
})

test('a taken name is rejected before the browser is changed', async () => {
  const project = await server.project()
  const session = await project.session()
  await project.session({ headless: true, name: 'taken' })

  const { status } = await project.call('PATCH', `/browsers/${session.session_id}`, {
    name: 'taken',
    viewport: { width: 640, height: 480 },
  })

  assert.equal(status, 409)
  assert.deepEqual(agentOf(session).viewports, [])
})

test('an update is rejected completely when the browser rejects its part', async () => {
  const project = await server.project()
  const session = await project.session()
  agentOf(session).onResize = () => {
    throw new Error('no')
  }

  const { status, body } = await project.call<{ code: string }>('PATCH', `/browsers/${session.session_id}`, {
    name: 'new',
    tags: { k: 'v' },
    start_url: 'about:blank#never',
    telemetry: { enabled: true },
    viewport: { width: 640, height: 480 },
  })

  assert.deepEqual([status, body.code], [500, 'session_update_failed'])
  assert.deepEqual(steady((await project.call('GET', `/browsers/${session.session_id}`)).body), steady(session))
  assert.deepEqual(agentOf(session).navigations, [])
})

test('changes of a rejected update to the browser are reverted', async () => {
  const project = await server.project()
  const session = await project.session({ headless: true, viewport: { width: 800, height: 600 } })
  const agent = agentOf(session)
  // While the browser changes, another session takes the name, so the write of the row, which comes last, fails.
  agent.onResize = async () => {
    agent.onResize = () => {}
    await project.session({ headless: true, name: 'contested' })
  }

  const { status } = await project.call('PATCH', `/browsers/${session.session_id}`, {
    name: 'contested',
    viewport: { width: 640, height: 480 },
  })

  assert.equal(status, 409)
  assert.deepEqual(
    agent.viewports.map(({ width }) => width),
    [640, 800],
  )
  assert.deepEqual(steady((await project.call('GET', `/browsers/${session.session_id}`)).body), steady(session))
})

test('changes that could not be reverted are reverted later', async () => {
  const project = await server.project()
  const session = await project.session({ headless: true, viewport: { width: 800, height: 600 } })
  const agent = agentOf(session)
  agent.onResize = () => {
    throw new Error('not now')
  }
  await project.call('PATCH', `/browsers/${session.session_id}`, { viewport: { width: 640, height: 480 } })
  agent.viewports.length = 0
  agent.onResize = () => {}

  await server.services.updater.restoreInconsistent()
  await server.services.updater.restoreInconsistent()

  assert.deepEqual(agent.viewports, [{ width: 800, height: 600, refresh_rate: 60 }], 'once, for then it is sure')
})

test('updates of one session run one after another, and none is lost', async () => {
  const project = await server.project()
  const session = await project.session()
  const agent = agentOf(session)
  let underWay = 0
  agent.onResize = async () => {
    underWay += 1
    assert.equal(underWay, 1)
    await new Promise(setImmediate)
    underWay -= 1
  }
  const categories = ['console', 'network', 'page', 'interaction', 'screenshot', 'platform']

  const answers = await Promise.all([
    ...categories.map((category, index) =>
      project.call('PATCH', `/browsers/${session.session_id}`, {
        telemetry: { browser: { [category]: { enabled: true } } },
        viewport: { width: 100 + index, height: 100 },
      }),
    ),
    project.call('PATCH', `/browsers/${session.session_id}`, { name: 'also' }),
  ])

  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
  const { body } = await project.call('GET', '/browsers/also')
  const browser: Record<string, { enabled?: boolean | undefined } | undefined> = body.telemetry?.browser ?? {}
  for (const category of categories) assert.equal(browser[category]?.enabled, true)
  assert.equal(body.viewport.width, agent.viewports.at(-1)?.width)
})

test('a delete does not wait for an update, which then finds no session', async () => {
  const project = await server.project()
  const session = await project.session()
  const resizing = Promise.withResolvers<void>()
  agentOf(session).onResize = () => {
    resizing.resolve()
    return new Promise(() => {})
  }
  const update = project.call<{ code: string }>('PATCH', `/browsers/${session.session_id}`, {
    name: 'late',
    viewport: { width: 640, height: 480 },
  })
  await resizing.promise

  const deleting = performance.now()
  const deleted = await project.call('DELETE', `/browsers/${session.session_id}`)
  const milliseconds = performance.now() - deleting

  assert.equal(deleted.status, 204)
  assert.ok(milliseconds < 10_000, `the delete took ${milliseconds} ms`)
  const { status, body } = await update
  assert.deepEqual([status, body.code], [404, 'session_not_found'])
  const { body: record } = await project.call('GET', `/browsers/${session.session_id}?include_deleted=true`)
  assert.deepEqual([record.name, record.viewport.width], [undefined, 1920])
})

test('an update never restores a deleted session', async () => {
  const project = await server.project()
  const sessions = await Promise.all(Array.from({ length: 8 }, () => project.session()))

  await Promise.all(
    sessions.map(async ({ session_id }, index) => {
      const path = `/browsers/${session_id}`
      const [updated, deleted] = await Promise.all([
        project.call('PATCH', path, { name: `n${index}`, viewport: { width: 640, height: 480 } }),
        project.call('DELETE', path),
      ])
      assert.ok([200, 404].includes(updated.status), String(updated.status))
      assert.equal(deleted.status, 204)
      assert.equal((await project.call('GET', path)).status, 404)
      assert.equal((await project.call('PATCH', path, { name: 'after' })).status, 404)
    }),
  )
})

test('a session that is unknown, deleted, starting or another project’s is not found', async () => {
  const [project, other] = [await server.project(), await server.project()]
  const session = await project.session({ headless: true, name: 'mine' })
  const gone = await project.session()
  await project.call('DELETE', `/browsers/${gone.session_id}`)
  server.host.hangNextStart()
  const starting = project.call('POST', '/browsers', { headless: true, name: 'starting' })
  while (server.host.starts.size === 0) await delay(5)

  for (const [caller, idOrName] of [
    [project, 'nobody'],
    [project, gone.session_id],
    [project, 'starting'],
    [other, session.session_id],
    [other, 'mine'],
  ] as const) {
    const { status, body } = await caller.call<{ code: string }>('PATCH', `/browsers/${idOrName}`, { name: 'x' })
    assert.deepEqual([status, body.code], [404, 'session_not_found'], idOrName)
  }
  const { status } = await project.call('DELETE', '/browsers/starting')
  assert.equal(status, 204)
  await starting
})

test('after the server was killed during an update, the browser is restored to the row', async () => {
  const project = await server.project()
  const session = await project.session({ headless: true, viewport: { width: 800, height: 600 } })
  const agent = agentOf(session)
  const resizing = Promise.withResolvers<void>()
  agent.onResize = () => {
    resizing.resolve()
    return new Promise(() => {})
  }
  const cutOff = project.call('PATCH', `/browsers/${session.session_id}`, {
    name: 'half',
    viewport: { width: 640, height: 480 },
  })
  cutOff.catch(() => {})
  await resizing.promise

  await server.crash()
  const restored = Promise.withResolvers<void>()
  agent.onResize = () => restored.resolve()
  await server.start()
  await restored.promise

  assert.deepEqual(
    agent.viewports.map(({ width }) => width),
    [640, 800],
  )
  const { body } = await project.call('GET', `/browsers/${session.session_id}`)
  assert.deepEqual([body.name, body.viewport], [undefined, session.viewport])
})

function agentOf({ session_id }: Browser): FakeAgent {
  return server.host.agentOf(session_id as SessionId)
}

/** Removes fields that differ between two reads, and absent ones. */
function steady({ usage: _usage, ...record }: Browser): Omit<Browser, 'usage'> {
  return JSON.parse(JSON.stringify(record))
}

test('a part that changes only the browser is applied', async () => {
  const project = await server.project()
  const session = await project.session()
  let applied = 0
  const store = new SessionStore(server.database, 'test')
  const updater = new SessionUpdater({
    store,
    resolver: new SessionResolver(store),
    plans: [
      async () => ({
        apply: async () => {
          applied += 1
        },
      }),
    ],
    restores: [],
    locks: new KeyedQueue(),
    events: new LifecycleEvents(),
    driverId: 'test',
    elsewhere: 'session_unreachable',
    logger: createLogger({ name: 'test', level: 'silent', json: true }),
  })

  const { id } = await updater.update(project.id, session.session_id, {})

  assert.deepEqual([id, applied], [session.session_id, 1])
})
