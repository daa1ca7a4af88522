import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { CdpClient } from '../testing/cdp.ts'
import { deepOnly, rounds } from './testing/deep.ts'
import { FaultTestbed } from './testing/fault-testbed.ts'
import { findPart } from './testing/parts.ts'
import { call, canBeUsed, createSession, deleteSession, isActive } from './testing/sessions.ts'
import { until } from './testing/until.ts'

const testbed = await FaultTestbed.open()
const berth = await testbed.start()
after(() => testbed[Symbol.asyncDispose]())
const before = await testbed.view.holdings()

test('a session that is deleted by its name while it starts ends, and its name is free', async () => {
  for (let round = 0; round < rounds({ short: 2, deep: 20 }); round++) {
    const creation = call<{ code: string }>(berth, 'POST', '/browsers', { headless: true, name: 'race-x' })
    await delay(rounds({ short: 250, deep: 40 }) * round)
    await until('a delete that finds it', async () => (await deleteSession(berth, 'race-x')) === 204, {
      limitSeconds: 60,
      everyMilliseconds: 2,
    })

    const { status, shouldRetry, body } = await creation

    if (status === 200) assert.equal(await isActive(berth, 'race-x'), false)
    else assert.deepEqual([status, shouldRetry, body.code], [409, 'false', 'session_ended_while_starting'])
    assert.equal(await deleteSession(berth, (await createSession(berth, { name: 'race-x' })).session_id), 204)
  }
  assert.deepEqual(await testbed.view.findLeft(before, 20), [])
})

test('of ten simultaneous deletes one ends the session, and its clients are disconnected', async () => {
  const { session_id, cdp_ws_url } = await createSession(berth)
  const client = await CdpClient.open(cdp_ws_url)
  const pending = assert.rejects(client.evaluate(await client.openPage(), 'new Promise(() => {})'))
  const closed = once(client.socket, 'close')

  const statuses = await Promise.all(Array.from({ length: 10 }, () => deleteSession(berth, session_id)))

  assert.deepEqual(statuses.toSorted(), [204, ...Array.from({ length: 9 }, () => 404)])
  await Promise.all([closed, pending])
  assert.equal(await isActive(berth, session_id), false)
  assert.deepEqual(await testbed.view.findLeft(before, 20), [])
})

test('twenty clients that create and delete under few names all get correct responses', async () => {
  const names = ['one', 'two', 'three', 'four']
  const clients = Array.from({ length: 20 }, (_value, index) => names[index % names.length] as string)

  for (let round = 0; round < rounds({ short: 1, deep: 10 }); round++) {
    const created = await Promise.all(
      clients.map(async (name) => ({ name, ...(await call(berth, 'POST', '/browsers', { headless: true, name })) })),
    )

    const winners = created.filter(({ status }) => status === 200)
    assert.deepEqual(winners.map(({ name }) => name).toSorted(), names.toSorted(), 'one winner for each name')
    for (const { status, shouldRetry } of created.filter((answer) => answer.status !== 200))
      assert.deepEqual([status, shouldRetry], [409, 'false'])
    const { body: listed } = await call<{ session_id: string }[]>(berth, 'GET', '/browsers')
    assert.deepEqual(
      listed.map(({ session_id }) => session_id).toSorted(),
      winners.map(({ body }) => body.session_id).toSorted(),
    )
    assert.ok(await canBeUsed((winners[0] as (typeof winners)[0]).body))

    const deleted = await Promise.all(clients.map(async (name) => ({ name, status: await deleteSession(berth, name) })))

    assert.deepEqual(
      deleted
        .filter(({ status }) => status === 204)
        .map(({ name }) => name)
        .toSorted(),
      names.toSorted(),
    )
    assert.equal(deleted.filter(({ status }) => status === 404).length, clients.length - names.length)
  }
  assert.deepEqual(await testbed.view.findLeft(before, 20), [])
})

test('simultaneous creates and deletes of twenty clients lose and leave nothing', async () => {
  const clients = Array.from({ length: 20 }, (_value, index) => `crossing-${index % 5}`)

  const outcomes = await Promise.all(
    clients.map(async (name, index) => {
      await delay(index * 60)
      const created = await call(berth, 'POST', '/browsers', { headless: true, name })
      const deleted = created.status === 200 ? await deleteSession(berth, created.body.session_id) : undefined
      return { name, created: created.status, shouldRetry: created.shouldRetry, deleted }
    }),
  )

  for (const outcome of outcomes) {
    if (outcome.created === 200) assert.equal(outcome.deleted, 204, 'who made it, and nobody else, has deleted it')
    else assert.deepEqual([outcome.created, outcome.shouldRetry], [409, 'false'])
  }
  assert.ok(outcomes.filter(({ created }) => created === 200).length >= 5)
  assert.deepEqual((await call<unknown[]>(berth, 'GET', '/browsers')).body, [])
  assert.deepEqual(await testbed.view.findLeft(before, 20), [])
})

test('a silent client keeps its session, whose idle time starts when the client disconnects', deepOnly, async () => {
  const { session_id, cdp_ws_url } = await createSession(berth, { timeout_seconds: 10 })
  const client = await CdpClient.open(cdp_ws_url)

  await delay(40_000) // The wait is what the test is about.
  assert.ok(await isActive(berth, session_id))
  await client.close()
  const closedAt = Date.now()
  await until('404', async () => !(await isActive(berth, session_id)), { limitSeconds: 25, everyMilliseconds: 250 })

  assert.ok(Date.now() - closedAt >= 10_000)
})

test('a client whose process is stopped does not keep its session', deepOnly, async () => {
  const { session_id, cdp_ws_url } = await createSession(berth, { timeout_seconds: 10 })
  const client = await CdpClient.open(cdp_ws_url, { autoPong: false })
  // Behaves like a stopped process: reads nothing and answers no ping.
  client.socket.pause()

  await until('404', async () => !(await isActive(berth, session_id)), { limitSeconds: 120, everyMilliseconds: 500 })

  assert.deepEqual(await testbed.view.processesOf(session_id), [])
  client.socket.terminate()
})

test('a session whose browser dies repeatedly either ends or works, and reports which', deepOnly, async () => {
  const session = await createSession(berth)
  const chromium = async () => (await findPart(testbed.view, session.session_id, 'chromium')).pid

  for (let crash = 0; crash < 6; crash++) {
    const pid = await until(
      'Chromium, or the end',
      async () => ((await isActive(berth, session.session_id)) ? chromium().catch(() => undefined) : -1),
      { limitSeconds: 20 },
    )
    if (pid === -1) break
    process.kill(pid, 'SIGKILL')
  }
  await until(
    'the truth',
    async () => !(await isActive(berth, session.session_id)) || canBeUsed(session).catch(() => false),
    { limitSeconds: 20 },
  )

  const status = await deleteSession(berth, session.session_id)
  assert.ok([204, 404].includes(status))
  assert.deepEqual(await testbed.view.findLeft(before, 20), [])
})
