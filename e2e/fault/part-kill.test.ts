import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { CdpClient } from '../testing/cdp.ts'
import { startPages } from '../testing/pages.ts'
import { freePort } from '../testing/shared-storage.ts'
import { rounds } from './testing/deep.ts'
import { FaultTestbed } from './testing/fault-testbed.ts'
import { killEgress, killPart, killPostgres, type SessionPart } from './testing/parts.ts'
import { type Answer, call, canBeUsed, createSession, deleteSession, isActive } from './testing/sessions.ts'
import { until } from './testing/until.ts'

/** The promised limit for recovery after any part has ended. */
const recoveryLimitSeconds = 5
/** Idle database connections are closed after ten seconds. */
const settleLimitSeconds = 20

const pages = await startPages()
const testbed = await FaultTestbed.open()
const { view } = testbed
const environment = { BERTH_EGRESS_ALLOW: pages.allowed }
const flags = ['--port', String(await freePort())]
let berth = await testbed.start({ environment, flags })
after(async () => {
  await testbed[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})
const before = await view.holdings()

test('egress is restarted for sessions of an earlier server, and their pages load', async () => {
  const session = await createSession(berth)
  await berth.signal('SIGKILL')
  berth = await testbed.start({ environment, flags })
  const client = await CdpClient.open(session.cdp_ws_url)
  const page = await client.openPage()

  await killEgress(view)

  await until('a page that loads', async () => (await titleOf(client, page)) === 'Home', {
    limitSeconds: recoveryLimitSeconds,
  })
  assert.equal((await healthOf('egress')).egress, 'ok')
  await client.close()
  assert.equal(await deleteSession(berth, session.session_id), 204)
})

test('a create and a delete succeed although egress is killed meanwhile', async () => {
  for (const delay of delays(rounds({ short: 2, deep: 12 }), 400)) {
    const old = await createSession(berth)
    const creation = call(berth, 'POST', '/browsers', { headless: true })
    await wait(delay)
    await killEgress(view)
    const deletion = deleteSession(berth, old.session_id)

    const created = await creation

    assert.equal(await deletion, 204)
    assert.equal(created.status, 200, JSON.stringify(created.body))
    assert.equal(await loadsPage(created.body.cdp_ws_url), true)
    assert.equal(await deleteSession(berth, created.body.session_id), 204)
  }
  assert.deepEqual(await view.findLeft(before, settleLimitSeconds), [])
})

test('the death of an agent only ends its own session', async () => {
  const [session, other] = [await createSession(berth), await createSession(berth)]
  const client = await CdpClient.open(session.cdp_ws_url)
  const closed = once(client.socket, 'close')

  await killPart(view, session.session_id, 'agent')

  await closed
  await until('404', async () => !(await isActive(berth, session.session_id)), { limitSeconds: recoveryLimitSeconds })
  assert.ok(await canBeUsed(other))
  assert.equal(await deleteSession(berth, other.session_id), 204)
  assert.deepEqual(await view.findLeft(before, settleLimitSeconds), [])
})

for (const part of ['chromium', 'display'] satisfies SessionPart[]) {
  test(`after the death of ${part}, clients are disconnected, and the same address serves a new browser`, async () => {
    const session = await createSession(berth, { headless: part !== 'display' })
    const clients = [await CdpClient.open(session.cdp_ws_url), await CdpClient.open(session.cdp_ws_url)]
    const page = await (clients[0] as CdpClient).openPage()
    const pending = assert.rejects((clients[0] as CdpClient).evaluate(page, 'new Promise(() => {})'))
    const closed = clients.map(({ socket }) =>
      once(socket, 'close', { signal: AbortSignal.timeout(recoveryLimitSeconds * 1000) }),
    )

    await killPart(view, session.session_id, part)

    await Promise.all(closed)
    await pending
    await until('a browser', () => canBeUsed(session).catch(() => false), { limitSeconds: recoveryLimitSeconds })
    assert.ok(await isActive(berth, session.session_id))
    assert.equal(await deleteSession(berth, session.session_id), 204)
    assert.deepEqual(await view.findLeft(before, settleLimitSeconds), [])
  })
}

test('an agent or a Chromium that dies while its session starts or ends leaves nothing', async () => {
  for (const part of ['agent', 'chromium'] satisfies SessionPart[]) {
    const creation = call(berth, 'POST', '/browsers', { headless: true, name: `dies-${part}` })
    const machineId = await until('a machine', startingMachine, { limitSeconds: 60, everyMilliseconds: 2 })
    await until(
      `its ${part}`,
      () =>
        killPart(view, machineId, part).then(
          () => true,
          () => false,
        ),
      { limitSeconds: 60, everyMilliseconds: 10 },
    )

    const { status, shouldRetry, body } = await creation

    // It was ready before the kill, so it continues with a new Chromium or ends with its agent.
    if (status === 200) assert.ok([204, 404].includes(await deleteSession(berth, body.session_id)))
    else assert.deepEqual([status, shouldRetry], [500, 'false'])
  }
  const ending = await createSession(berth)
  const deletion = deleteSession(berth, ending.session_id)
  await killPart(view, ending.session_id, 'agent').catch(() => {}) // The delete may have been faster.
  assert.equal(await deletion, 204)
  assert.deepEqual(await view.findLeft(before, settleLimitSeconds), [])
})

test('PostgreSQL is restarted, and until then every response names the database as the cause', async () => {
  const session = await createSession(berth)
  const client = await CdpClient.open(session.cdp_ws_url)
  const page = await client.openPage()

  await killPostgres(view)

  const answers: Answer[] = []
  await until(
    'a list of sessions',
    async () => {
      answers.push(await call(berth, 'GET', `/browsers/${session.session_id}`))
      return answers.at(-1)?.status === 200
    },
    { limitSeconds: recoveryLimitSeconds, everyMilliseconds: 10 },
  )
  for (const { status, shouldRetry, body } of answers.slice(0, -1)) {
    assert.deepEqual([status, shouldRetry, body], [503, 'true', unavailable])
  }
  assert.equal(await client.evaluate(page, '1 + 1'), 2, 'a client of a session does not notice')
  await client.close()
  assert.equal(await deleteSession(berth, session.session_id), 204)
})

test('creates and deletes during which PostgreSQL is killed respond correctly and leave nothing', async () => {
  for (const delay of delays(rounds({ short: 2, deep: 16 }), 600)) {
    const old = await createSession(berth, { name: 'old' })
    const creation = call(berth, 'POST', '/browsers', { headless: true, name: 'new' })
    await wait(delay)
    await killPostgres(view)
    const deletion = await call(berth, 'DELETE', `/browsers/${old.session_id}`)
    const created = await creation

    for (const { status, shouldRetry } of [deletion, created].filter((answer) => answer.status >= 400)) {
      assert.deepEqual([status, shouldRetry], [503, 'true'])
    }
    await until('the database', async () => (await call(berth, 'GET', '/browsers')).status === 200, {
      limitSeconds: recoveryLimitSeconds,
    })
    if (deletion.status === 204) assert.equal(await isActive(berth, old.session_id), false)
    else await deleteSession(berth, old.session_id)
    if (created.status === 200) assert.equal(await deleteSession(berth, created.body.session_id), 204)
    await until('both names', () => areFree('old', 'new'), { limitSeconds: recoveryLimitSeconds })
    assert.deepEqual(await view.findLeft(before, settleLimitSeconds), [], `killed ${delay} ms after the create`)
  }
})

const unavailable = { code: 'database_unavailable', message: 'The database does not respond. Try again in a moment.' }

/** A name is free when a create with it fails for another reason. */
async function areFree(...names: readonly string[]): Promise<boolean> {
  const { body } = await call<{ name?: string }[]>(berth, 'GET', '/browsers')
  if (body.some(({ name }) => name !== undefined && names.includes(name))) return false
  // One session takes each name in turn.
  const { status, body: session } = await call(berth, 'POST', '/browsers', { headless: true })
  if (status !== 200) return false
  const renamings: number[] = []
  for (const name of names)
    renamings.push((await call(berth, 'PATCH', `/browsers/${session.session_id}`, { name })).status)
  await deleteSession(berth, session.session_id)
  return renamings.every((renaming) => renaming === 200)
}

async function startingMachine(): Promise<string | undefined> {
  return (await readdir(join(view.runtimeFolder, 'm'))).find((name) => name.startsWith('mch'))
}

async function loadsPage(url: string): Promise<boolean> {
  const client = await CdpClient.open(url)
  const page = await client.openPage()
  await until('a page that loads', async () => (await titleOf(client, page)) === 'Home', {
    limitSeconds: recoveryLimitSeconds,
  })
  await client.close()
  return true
}

async function titleOf(client: CdpClient, page: string): Promise<unknown> {
  await client.send('Page.navigate', { url: pages.url }, page)
  return client.evaluate(page, 'document.title').catch(() => undefined)
}

async function healthOf(part: string): Promise<Record<string, string>> {
  return until(
    `the ${part} in /health`,
    async () => {
      const { body } = await call<Record<string, string>>(berth, 'GET', '/health')
      return body[part] === 'ok' && body
    },
    { limitSeconds: recoveryLimitSeconds },
  )
}

/** Spreads kills over the duration of a create. */
function delays(count: number, longestMilliseconds: number): readonly number[] {
  return Array.from({ length: count }, (_value, index) =>
    Math.round((index * longestMilliseconds) / Math.max(1, count - 1)),
  )
}

function wait(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds)) // The moment of the kill is what the test varies.
}
