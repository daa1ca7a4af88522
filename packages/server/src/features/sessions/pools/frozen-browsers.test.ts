import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { BrowserPool } from '@berth/contract/browser-pools/browser-pool.ts'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { PoolId, SessionId } from '@berth/contract/common/ids.ts'
import { TestServer } from '../../../testing/server-test.ts'

const server = await TestServer.open({ standbyMilliseconds: 200 })
after(() => server.close())

test('ready browsers are frozen, stay so when they are leased, wake at first use, and do not time out', async () => {
  const owner = await server.project()
  server.host.firstState = { idle_since: server.clock.now().getTime() - 50_000 }
  const asked = { size: 1, headless: true, timeout_seconds: 10 }
  const { body: pool } = await owner.call<BrowserPool>('POST', '/browser_pools', asked)
  await server.services.poolFiller.fill(pool.id as PoolId, new AbortController().signal)
  server.host.firstState = {}
  const { id } = await server.database
    .selectFrom('sessions')
    .select('id')
    .where('pool_id', '=', pool.id as PoolId)
    .executeTakeFirstOrThrow()
  const isNotedFrozen = async () => (await server.row(id)).standby_since !== null
  await until(isNotedFrozen)
  assert.ok(server.host.agentOf(id).isFrozen)

  server.clock.advance(1000)
  const { body: leased } = await owner.call<Browser>('POST', `/browser_pools/${pool.id}/acquire`)
  await server.reap()

  assert.equal((await owner.call('GET', `/browsers/${leased.session_id}`)).status, 200)
  assert.ok(leased.usage.uptime_ms < 100_000, 'the time in the pool does not count')
  assert.ok(server.host.agentOf(id).isFrozen, 'a lease alone wakes nothing')
  const jwt = new URL(leased.cdp_ws_url).searchParams.get('jwt')
  const used = await fetch(`${leased.base_url}/json/version?jwt=${jwt}`)
  assert.equal(used.status, 200)
  server.clock.advance(11)
  server.host.agentOf(id as SessionId).setState({ idle_since: server.clock.now().getTime() - 11_000 })
  await until(async () => {
    await server.reap()
    return (await server.row(id)).state === 'deleted'
  })
})

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 30_000
  while (!(await condition())) {
    assert.ok(performance.now() < deadline, 'it did not happen within 30 s')
    await delay(10)
  }
}
