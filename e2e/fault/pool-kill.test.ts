import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Berth } from '../testing/berth.ts'
import { rounds } from './testing/deep.ts'
import { FaultTestbed } from './testing/fault-testbed.ts'
import { type Answer, call, canBeUsed, type SessionRecord } from './testing/sessions.ts'
import { until } from './testing/until.ts'

interface Pool {
  readonly available_count: number
  readonly acquired_count: number
}

const path = '/browser_pools/warm'
const size = 2
const acquire = (berth: Berth, seconds: number) =>
  call(berth, 'POST', `${path}/acquire`, { acquire_timeout_seconds: seconds })
const release = (berth: Berth, { session_id }: SessionRecord, reuse: boolean) =>
  call(berth, 'POST', `${path}/release`, { session_id, reuse })
const counts = async (berth: Berth) => {
  const { body } = await call<Pool>(berth, 'GET', path)
  return { available: body.available_count, acquired: body.acquired_count }
}

test('kill -9 of the server at any moment loses no browser of a pool, and gives none to two callers', async () => {
  await using testbed = await FaultTestbed.open()
  let berth = await testbed.start()
  const { status } = await call(berth, 'POST', '/browser_pools', {
    name: 'warm',
    size,
    headless: true,
    fill_rate_per_minute: 6000,
  })
  assert.equal(status, 201)
  const isFull = async () => {
    const { available, acquired } = await counts(berth)
    return available + acquired === size
  }
  await until('a full pool', isFull, { limitSeconds: 120 })

  for (let round = 0; round < rounds({ short: 1, deep: 40 }); round += 1) {
    const callers = [1, 2, 3].map((caller) => useUntilCut(berth, caller))
    await delay(200 + Math.random() * 600)
    await berth.signal('SIGKILL')
    const leases = (await Promise.all(callers)).flat()
    berth = await testbed.start()

    assert.equal(new Set(leases.map(({ session_id }) => session_id)).size, leases.length, 'no browser has two callers')
    // A release or an acquire without a response may or may not have taken effect.
    for (const lease of leases) await release(berth, lease, true)
    const { body: sessions } = await call<SessionRecord[]>(berth, 'GET', '/browsers')
    for (const session of sessions) await release(berth, session, true)
    await until('a full pool', async () => (await counts(berth)).available === size, { limitSeconds: 60 })
    const { body: browser } = await acquire(berth, 10)
    assert.ok(await canBeUsed(browser))
    assert.equal((await release(berth, browser, true)).status, 204)
  }

  assert.equal((await call(berth, 'DELETE', path, { force: true })).status, 204)
})

/** Leases and releases until the server is gone, and returns what was leased then, according to its responses. */
async function useUntilCut(berth: Berth, caller: number): Promise<readonly SessionRecord[]> {
  for (let turn = 0; ; turn += 1) {
    const acquired: Answer | undefined = await acquire(berth, 5).catch(() => undefined)
    if (!acquired) return []
    if (acquired.status !== 200) continue
    const released = await release(berth, acquired.body, (turn + caller) % 4 !== 0).catch(() => undefined)
    if (!released) return [acquired.body]
    assert.equal(released.status, 204)
  }
}
