import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Berth } from '../testing/berth.ts'
import { CdpClient } from '../testing/cdp.ts'
import { freePort } from '../testing/shared-storage.ts'
import { FaultTestbed } from './testing/fault-testbed.ts'
import { hasPart, killPart } from './testing/parts.ts'
import { call, canBeUsed, createSession, deleteSession, isActive } from './testing/sessions.ts'
import { until } from './testing/until.ts'

const testbed = await FaultTestbed.open()
const receiver = await startWebhookReceiver()
// The timeout starts when a session enters standby, which would start again after the kill.
const environment = { BERTH_STANDBY: 'off', BERTH_EGRESS_ALLOW: `127.0.0.1:${receiver.port}` }
const flags = ['--port', String(await freePort())]
/** Each test ends the server, and leaves the next one without sessions. */
let first = await testbed.start({ environment, flags })
after(async () => {
  await testbed[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

test('five live sessions with clients continue unchanged after kill -9 of the server', async () => {
  const webhook = { url: `http://127.0.0.1:${receiver.port}/`, event_types: ['session.created'] }
  const told = await call<{ id: string }>(first, 'POST', '/webhooks', webhook)
  assert.equal(told.status, 201)
  const sessions = []
  for (const [index, headless] of [true, false, true, false, true].entries()) {
    sessions.push(
      await createSession(first, { headless, name: `five-${index}`, timeout_seconds: index === 4 ? 10 : 600 }),
    )
  }
  const lastId = sessions.at(-1)?.session_id
  const clients = await Promise.all(sessions.map(({ cdp_ws_url }) => CdpClient.open(cdp_ws_url)))
  for (const [index, client] of clients.entries()) {
    const page = await client.openPage()
    await client.evaluate(page, `globalThis.mark = ${index}; document.title = 'page ${index}'`)
  }
  const changes = { tags: { k: 'v' }, viewport: { width: 1003, height: 701, refresh_rate: 30 } }
  assert.equal((await call(first, 'PATCH', '/browsers/five-0', changes)).status, 200)
  const targetsBefore = await Promise.all(clients.map(pagesOf))
  // Its timeout starts before the kill and must not restart with the next server.
  await clients[4]?.close()
  const idleSince = Date.now()

  const cut = clients.slice(0, 4).map(({ socket }) => once(socket, 'close'))
  await first.signal('SIGKILL')
  await Promise.all(cut)
  assert.ok(receiver.held > 0, 'deliveries were on their way')
  receiver.answers = true
  await delay(5_000) // A timer that starts with the next server ends that much later.
  const second = await testbed.start({ environment, flags })
  const startedAt = Date.now()

  const { body: listed } = await call<{ session_id: string }[]>(second, 'GET', '/browsers')
  assert.deepEqual(
    new Set(listed.map(({ session_id }) => session_id)),
    new Set(sessions.map(({ session_id }) => session_id)),
  )
  const { body: changed } = await call<typeof changes>(second, 'GET', '/browsers/five-0')
  assert.deepEqual({ tags: changed.tags, viewport: changed.viewport }, changes)
  const again = await call(second, 'POST', '/browsers', { headless: true, name: 'five-1' })
  assert.deepEqual([again.status, again.shouldRetry], [409, 'false'], 'names are still taken')
  for (const [index, { cdp_ws_url }] of sessions.slice(0, 4).entries()) {
    const client = await CdpClient.open(cdp_ws_url)
    const targets = await pagesOf(client)
    assert.deepEqual(targets, targetsBefore[index], 'the old address leads to the same tabs')
    const page = targets.find(({ title }) => title === `page ${index}`)
    const { sessionId } = await client.send('Target.attachToTarget', { targetId: page?.targetId, flatten: true })
    assert.equal(await client.evaluate(sessionId as string, 'globalThis.mark'), index, 'the page was not loaded anew')
    if (index === 0) await changesItsSize(second, client, sessionId as string)
    await client.close()
  }
  await until('the end of the idle session', async () => !(await isActive(second, 'five-4')), { limitSeconds: 20 })
  const ended = await call<{ deleted_at: string }>(second, 'GET', `/browsers/${lastId}?include_deleted=true`)
  const endedAt = Date.parse(ended.body.deleted_at)
  assert.ok(endedAt - idleSince >= 9_900, `it was idle for ${endedAt - idleSince} ms`)
  assert.ok(endedAt - startedAt < 9_900, `its timer went on, and it ended ${endedAt - startedAt} ms after the restart`)
  assert.ok(await isActive(second, 'five-0'), 'the others stay')
  const created = new Set(sessions.map(({ session_id }) => session_id))
  await until('what the webhook had to be told', () => receiver.taken.symmetricDifference(created).size === 0, {
    limitSeconds: 20,
  })
  assert.equal((await call(second, 'DELETE', `/webhooks/${told.body.id}`)).status, 204)
  for (const name of ['five-0', 'five-1', 'five-2', 'five-3']) assert.equal(await deleteSession(second, name), 204)
  first = second
})

/** The page has the size of the update before the kill, and takes that of another one. */
async function changesItsSize(berth: Berth, client: CdpClient, page: string): Promise<void> {
  const size = () => client.evaluate(page, 'innerWidth + "x" + innerHeight')
  assert.equal(await size(), '1003x701')
  assert.equal((await call(berth, 'PATCH', '/browsers/five-0', { viewport: { width: 640, height: 480 } })).status, 200)
  await until('the new size', async () => (await size()) === '640x480', { limitSeconds: 20 })
}

/** Accepts webhooks once it is allowed to answer. Until then it delays its responses. */
async function startWebhookReceiver() {
  const state = { answers: false, held: 0, taken: new Set<string>() }
  const server = createServer(async (request, response) => {
    const event = (await json(request)) as { data: { session_id: string } }
    if (!state.answers) {
      state.held += 1
      return
    }
    state.taken.add(event.data.session_id)
    response.writeHead(204).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async () => {
    server.closeAllConnections()
    server.close()
  }
  return Object.assign(state, { port: (server.address() as AddressInfo).port, [Symbol.asyncDispose]: close })
}

test('after a power failure the next start ends dead sessions, leaves nothing of them, and serves', async () => {
  const before = await testbed.view.holdings()
  const sessions = [
    await createSession(first, { name: 'dead' }),
    await createSession(first, { headless: false, name: 'dead-too' }),
  ]

  const { server, egress, postgres, machines } = await testbed.view.processes()
  for (const { pid } of [...server, ...egress, ...postgres, ...machines]) killIfThere(pid)
  await first.signal('SIGKILL')
  await until(
    'the end of all processes',
    async () => Object.values(await testbed.view.processes()).flat().length === 0,
    {
      limitSeconds: 60,
    },
  )
  const second = await testbed.start({ environment })

  for (const { session_id } of sessions) {
    assert.equal(await isActive(second, session_id), false)
    const { body } = await call<{ usage_status: string }>(second, 'GET', `/browsers/${session_id}?include_deleted=true`)
    assert.equal(body.usage_status, 'ready', 'the record of an ended session')
  }
  assert.deepEqual(await testbed.view.findLeft(before, 20), [])
  const session = await createSession(second, { name: 'dead' })
  assert.ok(await canBeUsed(session))
  assert.equal(await deleteSession(second, 'dead'), 204)
  first = second
})

test('a server that is stopped during a delete and a create keeps confirmed results', async () => {
  const before = await testbed.view.holdings()
  const { session_id } = await createSession(first, { name: 'between' })

  const deletion = call(first, 'DELETE', `/browsers/${session_id}`).then(
    ({ status }) => status,
    () => 'cut',
  )
  const creation = call(first, 'POST', '/browsers', { headless: true, name: 'late' }).then(
    ({ status }) => status,
    () => 'cut',
  )
  await first.signal('SIGTERM')
  const outcomes = [await deletion, await creation]
  const second = await testbed.start({ environment })

  assert.ok([204, 503, 'cut'].includes(outcomes[0] as number | string), `the delete answers ${outcomes[0]}`)
  assert.ok([200, 503, 'cut'].includes(outcomes[1] as number | string), `the create answers ${outcomes[1]}`)
  if (outcomes[0] === 204) assert.equal(await isActive(second, session_id), false, 'what was confirmed holds')
  if (outcomes[1] === 200) assert.equal(await isActive(second, 'late'), true, 'what was confirmed holds')
  for (const name of ['between', 'late']) await deleteSession(second, name)
  assert.deepEqual(await testbed.view.findLeft(before, 20), [])
  first = second
})

test('a crash without a running server is in the log of the next one', async () => {
  const { session_id } = await createSession(first)
  const crashesIn = ({ log }: { readonly log: string }) =>
    log.split('\n').filter((line) => line.includes('a program of a session crashed'))

  await killPart(testbed.view, session_id, 'chromium')
  await until('the first crash in the log', async () => crashesIn(first).length === 1, { limitSeconds: 20 })
  await first.signal('SIGKILL')
  await until('a browser', async () => hasPart(testbed.view, session_id, 'chromium'), { limitSeconds: 20 })
  await killPart(testbed.view, session_id, 'chromium')
  const second = await testbed.start({ environment })

  await until('the second crash in the log', async () => crashesIn(second).some(tellsOf(2)), { limitSeconds: 20 })
  assert.equal(crashesIn(second).filter(tellsOf(2)).length, 1)
  assert.equal(await deleteSession(second, session_id), 204)
})

function tellsOf(sequence: number): (line: string) => boolean {
  return (line) => new RegExp(`sequence\\W+${sequence}\\b`).test(line)
}

async function pagesOf(client: CdpClient): Promise<{ targetId: string; title: string; url: string }[]> {
  const { targetInfos } = await client.send('Target.getTargets')
  return (targetInfos as { targetId: string; title: string; url: string; type: string }[])
    .filter(({ type }) => type === 'page')
    .map(({ targetId, title, url }) => ({ targetId, title, url }))
    .toSorted((one, other) => one.targetId.localeCompare(other.targetId))
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It was deleted together with an earlier one.
  }
}
