import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import { CdpClient } from '../testing/cdp.ts'
import { startPages } from '../testing/pages.ts'
import { rounds } from './testing/deep.ts'
import { FaultTestbed } from './testing/fault-testbed.ts'
import { killPart } from './testing/parts.ts'
import { call, createSession, deleteSession, isActive } from './testing/sessions.ts'
import { until } from './testing/until.ts'

/** The rounds until the server's heap and allocator have reached their size. */
const warmUpRounds = 5
/** A leak of one session's state or of a buffer per round would exceed this. */
const maxGrowthKibibytesPerRound = 100
/** Noise of the garbage collector, which a few rounds cannot distinguish from growth. */
const noiseKibibytes = 30 * 1024

const pages = await startPages()
const testbed = await FaultTestbed.open()
const berth = await testbed.start({ environment: { BERTH_EGRESS_ALLOW: pages.allowed } })
after(async () => {
  await testbed[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})

test('rounds of create, use and delete leave nothing, and the memory of the server is flat', async () => {
  for (let round = 0; round < warmUpRounds; round++) await createUseDelete(round)
  const before = await testbed.view.holdings()
  const memoryBefore = await residentKibibytes()
  const count = rounds({ short: 5, deep: 200 })

  for (let round = 0; round < count; round++) await createUseDelete(round)

  assert.deepEqual(await testbed.view.findLeft(before, 20), [])
  const growth = (await residentKibibytes()) - memoryBefore
  const allowed = noiseKibibytes + count * maxGrowthKibibytesPerRound
  assert.ok(growth < allowed, `the server grew by ${growth} KiB in ${count} rounds, ${allowed} are allowed`)
})

test('clients that disappear leave nothing but their sessions, which end by their timeout', async () => {
  const before = await testbed.view.holdings()
  const count = rounds({ short: 2, deep: 50 })

  for (let round = 0; round < count; round++) {
    const session = await createSession(berth, { timeout_seconds: 10 })
    const clients = [await CdpClient.open(session.cdp_ws_url), await CdpClient.open(session.cdp_ws_url)]
    for (const client of clients) await client.openPage(pages.url)
    for (const client of clients) client.reset()
    // Every second session is left to its timeout, several at once.
    if (round % 2 === 0) assert.equal(await deleteSession(berth, session.session_id), 204)
  }

  await until(
    'the end of every session',
    async () => (await call<unknown[]>(berth, 'GET', '/browsers')).body.length === 0,
    {
      limitSeconds: 30,
      everyMilliseconds: 250,
    },
  )
  assert.deepEqual(await testbed.view.findLeft(before, 20), [])
})

test('clients that disappear during their create leave no session', async () => {
  const before = await testbed.view.holdings()
  const milliseconds = Array.from(
    { length: rounds({ short: 4, deep: 10 }) },
    (_value, index) => 50 + index * rounds({ short: 150, deep: 50 }),
  )

  for (const limit of milliseconds) {
    const signal = AbortSignal.timeout(limit)
    const body = JSON.stringify({ headless: true, timeout_seconds: 10 })
    const headers = { connection: 'close', 'content-type': 'application/json' }
    await berth.request('/browsers', { method: 'POST', headers, body, signal }).catch(() => undefined)
  }

  await until('no session', async () => (await call<unknown[]>(berth, 'GET', '/browsers')).body.length === 0, {
    limitSeconds: 60,
    everyMilliseconds: 250,
  })
  assert.deepEqual(await testbed.view.findLeft(before, 20), [])
})

async function createUseDelete(round: number): Promise<void> {
  const session = await createSession(berth, { headless: round % 5 !== 4 })
  const client = await CdpClient.open(session.cdp_ws_url)
  const page = await client.openPage()
  await client.send('Page.navigate', { url: pages.url }, page)
  assert.equal(await client.evaluate(page, '6 * 7'), 42)
  if (round % 5 === 2) await killPart(testbed.view, session.session_id, 'chromium')
  else if (round % 2 === 0) await client.close()
  assert.equal(await deleteSession(berth, session.session_id), 204)
  assert.equal(await isActive(berth, session.session_id), false)
}

async function residentKibibytes(): Promise<number> {
  const status = await readFile(`/proc/${berth.pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1])
}
