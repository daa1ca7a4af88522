import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { BidiClient } from '../testing/bidi-client.ts'
import { type StartedAgent, startAgent } from '../testing/start-agent.ts'

let agent: StartedAgent

before(async () => {
  agent = await startAgent()
  await agent.becomesReady()
})

after(() => agent[Symbol.asyncDispose]())

async function openClient(): Promise<BidiClient> {
  return BidiClient.open(`ws+unix:${agent.socketPath}:/webdriver`)
}

async function openSession(): Promise<BidiClient> {
  const client = await openClient()
  await client.send('session.new')
  return client
}

async function targets(): Promise<readonly string[]> {
  const client = await agent.connect()
  const { targetInfos } = await client.send('Target.getTargets')
  client.terminate()
  return targetInfos.map(({ type, targetId, url }: Record<string, string>) => `${type} ${targetId} ${url}`)
}

test('session.new starts a session and reports the browser', async () => {
  const client = await openClient()

  const before = await client.ask('session.status')
  const early = await client.ask('browsingContext.getTree')
  const created = await client.ask('session.new', { capabilities: { alwaysMatch: { webSocketUrl: true } } })
  const after = await client.ask('session.status')
  const second = await client.ask('session.new')

  assert.equal(before.result.ready, true)
  assert.equal(early.error, 'invalid session id')
  assert.match(created.result.sessionId, /^[0-9a-f-]{36}$/)
  assert.equal(created.result.capabilities.browserName, 'chrome')
  assert.match(created.result.capabilities.browserVersion, /^\d+\./)
  assert.equal(after.result.ready, false)
  assert.equal(second.error, 'session not created')
  client.terminate()
})

test('an impossible session is refused, and the next attempt on the same connection works', async () => {
  const client = await openClient()

  const firefox = await client.ask('session.new', { capabilities: { alwaysMatch: { browserName: 'firefox' } } })
  const twice = { alwaysMatch: { browserName: 'chrome' }, firstMatch: [{ browserName: 'chrome' }] }
  const contradiction = await client.ask('session.new', { capabilities: twice })
  const created = await client.ask('session.new', { capabilities: { firstMatch: [{ browserName: 'firefox' }, {}] } })

  assert.equal(firefox.error, 'session not created')
  assert.equal(contradiction.error, 'invalid argument')
  assert.equal(created.type, 'success')
  client.terminate()
})

test('messages that are not commands get an invalid argument error', async () => {
  const client = await openSession()

  for (const message of [
    '{',
    '[]',
    'null',
    '{"id":-1}',
    '{"id":7}',
    '{"id":8,"method":"session.status","params":[]}',
  ]) {
    client.socket.send(message)
  }
  await client.ask('session.status')

  assert.deepEqual(
    client.events.map(({ id, error }) => [id, error]),
    [null, null, null, null, 7, 8].map((id) => [id, 'invalid argument']),
  )
  client.terminate()
})

for (const command of ['session.end', 'browser.close']) {
  test(`${command} closes the connection of its sender, and changes nothing else`, async () => {
    const before = await targets()
    const [ending, staying] = [await openSession(), await openSession()]

    const answer = await ending.ask(command)

    assert.deepEqual(answer.result, {})
    assert.equal(await ending.closed, 1000)
    assert.equal(await staying.evaluate(await staying.firstContext(), '6 * 7'), 42)
    assert.deepEqual(await targets(), before)
    staying.terminate()
  })
}

test('Browser.close over BiDi does the same', async () => {
  const client = await openSession()

  await client.ask('goog:cdp.sendCommand', { method: 'Browser.close', params: {} })

  assert.equal(await client.closed, 1000)
  assert.ok((await targets()).length > 0)
})

test('a page keeps its state when clients connect and disconnect', async () => {
  const first = await openSession()
  const context = await first.firstContext()
  await first.send('browsingContext.navigate', { context, url: 'data:text/html,<p>kept', wait: 'complete' })
  await first.evaluate(context, 'window.kept = 1')
  first.terminate()

  const second = await openSession()

  assert.equal(await second.evaluate(context, 'window.kept'), 1)
  second.terminate()
})

test('each of two clients receives the events that it has subscribed to', async () => {
  const [first, second] = [await openSession(), await openSession()]
  const context = await first.firstContext()
  await first.send('session.subscribe', { events: ['log.entryAdded'] })

  await second.evaluate(context, "console.log('heard')")
  await first.evaluate(context, '1')

  assert.deepEqual(
    first.events.map(({ method, params }) => [method, params.text]),
    [['log.entryAdded', 'heard']],
  )
  assert.deepEqual(second.events, [])
  first.terminate()
  second.terminate()
})

test('a session starts while a page never finishes loading', async (context) => {
  const server = createServer((_request, response) => void response.write('<p>not the end')).listen(0, '127.0.0.1')
  context.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const cdp = await agent.connect()
  const page = await cdp.newPage()
  const started = cdp.nextEvent('Page.frameStartedLoading')
  await cdp.send('Page.enable', {}, page)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  void cdp.send('Page.navigate', { url }, page).catch(() => {})
  await started

  const client = await openSession()

  assert.ok((await client.send('browsingContext.getTree')).contexts.length > 1)
  client.terminate()
  cdp.terminate()
})

test('a slow client receives every message, and does not delay others', async () => {
  const [slow, quick] = [await openSession(), await openSession()]
  const { context } = await slow.send('browsingContext.create', { type: 'tab' })
  await slow.send('session.subscribe', { events: ['log.entryAdded'], contexts: [context] })

  slow.socket.pause()
  const count = 300
  await quick.evaluate(context, `for (let n = 0; n < ${count}; n++) console.log(n + ':' + 'x'.repeat(65536))`)
  assert.equal(await quick.evaluate(context, '6 * 7'), 42)
  slow.socket.resume()
  await slow.evaluate(context, '1')

  const numbers = slow.events.map(({ params }) => Number.parseInt(params.text, 10))
  assert.deepEqual(
    numbers,
    Array.from({ length: count }, (_, index) => index),
  )
  slow.terminate()
  quick.terminate()
})

test('a client does not change the download folder of another', async () => {
  const downloadPath = join(agent.folder, 'home', 'elsewhere')
  const cdp = await agent.connect()
  await cdp.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath, eventsEnabled: true })
  const page = await cdp.newPage()

  const client = await openSession()
  const done = cdp.nextEvent('Browser.downloadProgress', ({ state }) => state === 'completed')
  await cdp.evaluate(
    "Object.assign(document.createElement('a'), { href: 'data:,note', download: 'note.txt' }).click()",
    page,
  )
  await done

  assert.ok(existsSync(join(downloadPath, 'note.txt')))
  client.terminate()
  cdp.terminate()
})

test('a connected client counts as activity', async () => {
  const client = await openClient()
  assert.equal(JSON.parse((await agent.call('GET', '/state')).body).idle_since, null)

  client.terminate()

  await agent.statesUntil(({ idle_since }) => idle_since !== null)
})

test('the end of the mapper disconnects only BiDi clients, and the next client starts another mapper', async () => {
  const [bidi, cdp] = [await openSession(), await agent.connect()]
  const [pid] = agent.children('bidi-mapper')
  assert.ok(pid)

  process.kill(pid, 'SIGKILL')
  await bidi.closed

  const next = await openSession()
  assert.equal(await next.evaluate(await next.firstContext(), '6 * 7'), 42)
  assert.match((await cdp.send('Browser.getVersion')).product, /Chrome/)
  next.terminate()
  cdp.terminate()
})

// Last, because it leaves the agent with another browser.
test('a browser crash closes the connections, and the next client gets the new browser', async () => {
  const client = await openSession()
  const [pid] = agent.children('chromium')
  assert.ok(pid)

  process.kill(pid, 'SIGKILL')

  assert.equal(await client.closed, 1001)
  const next = await openSession()
  assert.equal(await next.evaluate(await next.firstContext(), '6 * 7'), 42)
  next.terminate()
})
