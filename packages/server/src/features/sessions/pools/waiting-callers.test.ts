import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { BrowserPool } from '@berth/contract/browser-pools/browser-pool.ts'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { PoolId } from '@berth/contract/common/ids.ts'
import { sql } from 'kysely'
import { startJobs } from '../../../jobs/start-jobs.ts'
import type { ApiAnswer, TestProject, TestServer } from '../../../testing/server-test.ts'
import { SharedServers } from '../../../testing/shared-servers.ts'

/* Two servers on one database. Browsers of the first are leased, used and released through both. */

const shared = await SharedServers.open()
after(() => shared.close())
const { first, second } = shared

interface Pooled {
  readonly owner: TestProject
  readonly pool: BrowserPool
}

/** A pool whose browsers run on the first server, or on the one that fills it. */
async function pooled(size = 1, filler: TestServer = first): Promise<Pooled> {
  const owner = await first.project()
  const body = { size, headless: true, fill_rate_per_minute: 1000 }
  const { body: pool } = await owner.call<BrowserPool>('POST', '/browser_pools', body)
  await fill(pool, filler)
  return { owner, pool }
}

const fill = ({ id }: BrowserPool, filler: TestServer = first) =>
  filler.services.poolFiller.fill(id as PoolId, new AbortController().signal)

const acquire = ({ owner, pool }: Pooled, on: TestServer = first, body: object = {}, init: RequestInit = {}) =>
  owner.on(on).call<Browser>('POST', `/browser_pools/${pool.id}/acquire`, body, init)

const release = ({ owner, pool }: Pooled, { session_id }: Browser, on: TestServer = first, reuse = true) =>
  owner.on(on).call('POST', `/browser_pools/${pool.id}/release`, { session_id, reuse })

const available = async ({ owner, pool }: Pooled) =>
  (await owner.call<BrowserPool>('GET', `/browser_pools/${pool.id}`)).body.available_count

const countWaiters = async ({ pool }: Pooled) => {
  const { rows } = await sql<{ waiters: number }>`
    select count(*)::int as waiters from pool_waiters where pool_id = ${pool.id}`.execute(first.database)
  return rows[0]?.waiters ?? 0
}

/** Adds a waiting caller to the end of the queue. */
async function wait(of: Pooled, on: TestServer, body: object = {}, init: RequestInit = {}) {
  const before = await countWaiters(of)
  const answer = acquire(of, on, body, init)
  answer.catch(() => {})
  await until(async () => (await countWaiters(of)) === before + 1)
  return { answer }
}

test('a caller waits for its time limit, and gets a response without a browser', async () => {
  const of = await pooled()
  await acquire(of)

  const begin = performance.now()
  const answers = await Promise.all([
    acquire(of, first, { acquire_timeout_seconds: 0 }),
    acquire(of, second, { acquire_timeout_seconds: 1 }),
  ])

  assert.deepEqual(
    answers.map(({ status, body }) => [status, body]),
    [
      [204, undefined],
      [204, undefined],
    ],
  )
  assert.ok(performance.now() - begin >= 1000)
  assert.equal(await countWaiters(of), 0)
})

test('callers are served in the order of their requests, on all servers', async () => {
  const of = await pooled()
  const { body: browser } = await acquire(of)
  const waiting: Promise<ApiAnswer<Browser>>[] = []
  const served: number[] = []
  for (const [turn, on] of [second, first, second, first, first, second].entries()) {
    const { answer } = await wait(of, on)
    waiting.push(answer)
    void answer.then(() => served.push(turn))
  }

  let held = browser
  for (const [turn, answer] of waiting.entries()) {
    assert.equal((await release(of, held, turn % 2 === 0 ? first : second)).status, 204)
    const { status, body } = await answer
    assert.equal(status, 200)
    held = body
  }

  assert.deepEqual(served, [0, 1, 2, 3, 4, 5])
})

test('a new browser goes to the first waiting caller', async () => {
  const owner = await first.project()
  const { body: pool } = await owner.call<BrowserPool>('POST', '/browser_pools', { size: 1, headless: true })
  const of = { owner, pool }
  const { answer } = await wait(of, second)

  const [, hasty] = await Promise.all([fill(pool), acquire(of, first, { acquire_timeout_seconds: 0 })])

  assert.equal((await answer).status, 200)
  assert.equal(hasty.status, 204)
})

test('a disconnected caller gets no browser, and later callers get it', async () => {
  const of = await pooled()
  const { body: browser } = await acquire(of)
  const leaving = new AbortController()
  const gone = await wait(of, second, {}, { signal: leaving.signal })
  const behind = await wait(of, first)

  leaving.abort()
  await assert.rejects(gone.answer)
  await until(async () => (await countWaiters(of)) === 1)
  await release(of, browser)

  assert.equal((await behind.answer).status, 200)
})

test('a browser is returned if its caller disconnects at any time before the response', async () => {
  const of = await pooled()

  for (let milliseconds = 0; milliseconds < 20; milliseconds += 2) {
    const { leases } = (milliseconds % 4 === 0 ? first : second).services
    const leaving = new AbortController()
    const asked = { projectId: of.owner.id, idOrName: of.pool.id, request: {}, signal: leaving.signal }
    const answer = leases.acquire(asked)
    await Promise.race([answer, delay(milliseconds)])
    leaving.abort()
    await answer

    await until(async () => (await available(of)) === 1)
  }
})

test('a taken name is rejected immediately, and also after a wait', async () => {
  const of = await pooled()
  const { body: browser } = await acquire(of, first, { name: 'taken' })

  const refused = await acquire(of, second, { name: 'taken' })
  assert.equal(refused.status, 409)
  const named = await wait(of, second, { name: 'late' })
  const behind = await wait(of, second)
  await of.owner.session({ headless: true, name: 'late' })
  await release(of, browser)

  assert.equal((await named.answer).status, 409)
  assert.equal((await behind.answer).status, 200)
})

test('callers that wait for a deleted pool get an error', async () => {
  const of = await pooled()
  await acquire(of)
  const waiting = [await wait(of, first), await wait(of, second)]

  await of.owner.call('DELETE', `/browser_pools/${of.pool.id}`, { force: true })

  for (const { answer } of waiting) assert.equal((await answer).status, 404)
})

test('browsers of a server that is away are not leased, and its callers do not block others', async () => {
  const lost = await first.sibling('lost')
  const of = await pooled(2, lost)
  const pool = `/browser_pools/${of.pool.id}`
  await of.owner.call('PATCH', pool, { size: 3 })
  await fill(of.pool, first)
  assert.equal(await available(of), 3)
  const held = await acquire(of, first)
  assert.ok(first.host.has(held.body.session_id as never), 'its own browsers come first')

  await lost.close()
  await until(async () => (await countListeners('lost')) === 0)

  assert.equal((await acquire(of, first, { acquire_timeout_seconds: 0 })).status, 204)
  await sql`insert into pool_waiters (pool_id, server_id) values (${of.pool.id}, 'lost')`.execute(first.database)
  const { answer } = await wait(of, second)
  await release(of, held.body)
  assert.equal((await answer).status, 200)
})

test('a broken connection for pool notifications is reopened', async () => {
  const of = await pooled()
  const { body: browser } = await acquire(of)
  const { answer } = await wait(of, second)
  const terminated = sql`
    select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'berth pools second'`

  await terminated.execute(first.database)
  await release(of, browser)

  assert.equal((await answer).status, 200)
  await until(async () => (await countListeners('second')) === 1)
})

test('a browser of another server is leased, used and released through either', async () => {
  const of = await pooled(1, second)

  const { body: browser } = await acquire(of, first, { start_url: 'https://start.test/' })
  assert.equal((await of.owner.call('GET', `/browsers/${browser.session_id}`)).status, 200)
  const agent = second.host.agentOf(browser.session_id as never)
  // From here on, the second server builds browsers itself, so this test must be the last one.
  await startJobs(second.jobs, second.services)
  await until(async () => agent.navigations.includes('https://start.test/'))
  const socket = new WebSocket(browser.cdp_ws_url.replace(/^ws:\/\/[^/]+/, `ws://127.0.0.1:${second.port}`))
  await once(socket, 'open')
  const closed = once(socket, 'close')

  assert.equal((await release(of, browser, first)).status, 204)

  await closed
  await until(async () => (await available(of)) === 1)
})

async function countListeners(serverId: string): Promise<number> {
  const { rows } = await sql<{ listeners: number }>`
    select count(*)::int as listeners from pg_stat_activity
    where application_name = ${`berth pools ${serverId}`}`.execute(first.database)
  return rows[0]?.listeners ?? 0
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 30_000
  while (!(await condition())) {
    assert.ok(performance.now() < deadline, 'it did not happen within 30 s')
    await delay(5)
  }
}
