import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import type { AgentState } from '@berth/contract/agent/agent-endpoints.ts'
import type { CdpClient } from '../testing/cdp-client.ts'
import { encodeFrame, opcodes } from '../testing/frames.ts'
import { type StartedAgent, startAgent } from '../testing/start-agent.ts'

const mebibyte = 1024 * 1024

let agent: StartedAgent

before(async () => {
  agent = await startAgent()
  await agent.becomesReady()
})

after(() => agent[Symbol.asyncDispose]())

function isIdle({ idle_since }: AgentState): boolean {
  return idle_since !== null
}

test('is ready when its first page answers', async () => {
  const { status, body } = await agent.call('GET', '/state')

  assert.equal(status, 200)
  assert.equal(JSON.parse(body).state, 'ready')
})

test('the page has exactly the viewport, and the focus', async () => {
  const client = await agent.connect()
  const page = await client.attach()

  const sizes = await client.evaluate(
    '[innerWidth, innerHeight, outerWidth, outerHeight, screen.width, screen.height]',
    page,
  )

  assert.deepEqual(sizes, [1280, 800, 1280, 800, 1280, 800])
  assert.equal(await client.evaluate('document.hasFocus()', page), true)
  client.terminate()
})

test('popups keep the size that their page asks for', async () => {
  const client = await agent.connect()
  const page = await client.attach()

  const opened = client.nextEvent('Target.targetCreated', ({ targetInfo }) => targetInfo.openerId !== undefined)
  await client.send('Target.setDiscoverTargets', { discover: true })
  await client.evaluate("void open('about:blank', '', 'width=400,height=300')", page)
  const popup = await client.attachTo((await opened).targetInfo.targetId)

  assert.equal(await client.evaluate('outerWidth', popup), 400)
  client.terminate()
})

test('an open client counts as activity, and the idle time starts when the last one has disconnected', async () => {
  const states = agent.states()
  const before = await nextState(states, (state) => state.idle_since !== null)
  const [first, second] = [await agent.connect(), await agent.connect()]
  await nextState(states, (state) => state.idle_since === null)
  const endedAt = Date.now()

  first.terminate()
  second.terminate()

  const afterwards = await nextState(states, (state) => state.idle_since !== null)
  assert.ok(Number(afterwards.idle_since) >= endedAt && Number(afterwards.idle_since) >= Number(before.idle_since))
  await states.return(undefined)
})

test('Browser.close only closes the connection of its sender', async () => {
  const [closing, staying] = [await agent.connect(), await agent.connect()]

  const answer = await closing.ask('Browser.close')

  assert.deepEqual(answer.result, {})
  assert.equal(await closing.closed, 1000)
  assert.match((await staying.send('Browser.getVersion')).product, /Chrome/)
  staying.terminate()
})

test('Browser.close within a CDP session is answered within it', async () => {
  const client = await agent.connect()
  const page = await client.attach()

  const answer = await client.ask('Browser.close', {}, page)

  assert.equal(answer.sessionId, page)
  assert.equal(await client.closed, 1000)
})

test('closing the last page leaves the browser alive', async () => {
  const client = await agent.connect()
  const { targetInfos } = await client.send('Target.getTargets')
  for (const { targetId, type } of targetInfos)
    if (type === 'page') await client.send('Target.closeTarget', { targetId })

  const page = await client.newPage()

  assert.equal(await client.evaluate('6 * 7', page), 42)
  client.terminate()
})

test('answers pings at once while a page is busy', async () => {
  const client = await agent.connect()
  const page = await client.newPage()
  client.socket.send(
    JSON.stringify({ id: 1000, method: 'Runtime.evaluate', sessionId: page, params: { expression: 'for (;;);' } }),
  )

  const sentAt = performance.now()
  client.socket.ping('still there?')
  const [payload] = await once(client.socket, 'pong')

  assert.equal(String(payload), 'still there?')
  // The page is busy for good.
  assert.ok(performance.now() - sentAt < 20_000)
  await client.send('Runtime.terminateExecution', {}, page)
  client.terminate()
})

test('transfers 60 MiB to the browser, and 120 MiB from it', async () => {
  const client = await agent.connect()
  const page = await client.newPage()

  const small = await client.evaluate(`7 /* ${' '.repeat(60 * mebibyte)} */`, page)
  const large = await client.evaluate(`'x'.repeat(${120 * mebibyte})`, page)

  assert.equal(small, 7)
  assert.equal(large.length, 120 * mebibyte)
  client.terminate()
})

test('a message that is too large for Chromium only closes the connection of its sender', async () => {
  const [large, other] = [await agent.connect(), await agent.connect()]

  large.socket.send(`{"id":1,"method":"Browser.getVersion","padding":"${' '.repeat(110 * mebibyte)}"}`)
  await large.closed

  assert.match((await other.send('Browser.getVersion')).product, /Chrome/)
  other.terminate()
})

test('a client that stops reading delays nobody, costs no memory, and misses nothing', async () => {
  const [slow, quick] = [await agent.connect(), await agent.connect()]
  const page = await slow.newPage()
  await slow.send('Runtime.enable', {}, page)
  const memoryBefore = residentBytes(agent)
  const numbers: number[] = []
  const messages = 1000
  const isComplete = Promise.withResolvers<void>()
  slow.onEvent(({ method, params }) => {
    if (method !== 'Runtime.consoleAPICalled') return
    numbers.push(params.args[0].value)
    if (numbers.length === messages) isComplete.resolve()
  })

  slow.socket.pause()
  const logging = `for (let n = 0; n < ${messages}; n++) console.log(n, 'x'.repeat(65536))`
  slow.socket.send(
    JSON.stringify({ id: 5000, method: 'Runtime.evaluate', params: { expression: logging }, sessionId: page }),
  )
  const answers = await timesOf(quick, 20)
  const memoryAfter = residentBytes(agent)
  slow.socket.resume()
  await isComplete.promise

  assert.ok(Math.max(...answers) < 20_000, `slowest answer ${Math.max(...answers)} ms`)
  assert.ok(memoryAfter - memoryBefore < 64 * mebibyte, `grew by ${(memoryAfter - memoryBefore) / mebibyte} MiB`)
  assert.deepEqual(
    numbers,
    Array.from({ length: messages }, (_, index) => index),
  )
  slow.terminate()
  quick.terminate()
})

test('a malformed frame closes its connection with 1002', async () => {
  const [broken, other] = [await agent.connect(), await agent.connect()]

  const unmasked = encodeFrame({ opcode: opcodes.text, payload: Buffer.from('{}') })
  rawSocketOf(broken).write(unmasked)

  assert.equal(await broken.closed, 1002)
  assert.match((await other.send('Browser.getVersion')).product, /Chrome/)
  other.terminate()
})

test('forwards discovery to Chromium', async () => {
  const version = await agent.call('GET', '/json/version')
  const refused = await agent.call('GET', '/json/new?about:blank')
  const made = await agent.call('PUT', '/json/new?about:blank')

  assert.match(JSON.parse(version.body).webSocketDebuggerUrl, /^ws:\/\/127\.0\.0\.1:\d+\/devtools\/browser\//)
  assert.equal(refused.status, 405)
  assert.equal(made.status, 200)
  const page = await agent.connect(`/devtools/page/${JSON.parse(made.body).id}`)
  assert.equal((await page.send('Runtime.evaluate', { expression: '1 + 1' })).result.value, 2)
  page.terminate()
})

test('a websocket to a page that does not exist is refused', async () => {
  const socket = await agent.rawSocket()
  socket.write(handshake('/devtools/page/ABC'))

  const [answer] = await once(socket, 'data')

  assert.doesNotMatch(String(answer), /^HTTP\/1\.1 101/)
  socket.destroy()
})

test('an unknown path is 404 in JSON', async () => {
  const { status, body } = await agent.call('GET', '/nothing')

  assert.equal(status, 404)
  assert.equal(JSON.parse(body).code, 'route_not_found')
})

// Last, because it leaves the agent with another browser.
test('a killed Chromium is reported, and replaced at the same address', async () => {
  const client = await agent.connect()
  const next = agent.records().next()
  const [pid] = agent.children('chromium')
  assert.ok(pid)

  process.kill(pid, 'SIGKILL')

  const { value: crash } = await next
  assert.equal(crash.sequence, 1)
  assert.equal('event' in crash && crash.event.service, 'chromium')
  assert.deepEqual((await agent.records().next()).value, crash, 'it is told until it is acknowledged')
  assert.equal((await agent.call('POST', '/events/acknowledgement', { sequence: 1 })).status, 204)
  await client.closed
  const again = await agent.connect()
  const page = await again.newPage()
  assert.equal(await again.evaluate('1 + 1', page), 2)
  again.terminate()
  await agent.statesUntil(isIdle)
})

async function nextState(
  states: AsyncGenerator<AgentState>,
  fits: (state: AgentState) => boolean,
): Promise<AgentState> {
  for (;;) {
    const { value, done } = await states.next()
    if (done) throw new Error('the agent ended')
    if (fits(value)) return value
  }
}

async function timesOf(client: CdpClient, count: number): Promise<readonly number[]> {
  const times: number[] = []
  for (let index = 0; index < count; index++) {
    const sentAt = performance.now()
    await client.send('Browser.getVersion')
    times.push(performance.now() - sentAt)
  }
  return times
}

function residentBytes({ process: { pid } }: StartedAgent): number {
  const [, kibibytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) * 1024
}

/** For bytes that the library would not send. */
function rawSocketOf({ socket }: CdpClient): NodeJS.WritableStream {
  return (socket as unknown as { _socket: NodeJS.WritableStream })._socket
}

function handshake(path: string): string {
  const lines = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${btoa('0123456789abcdef')}`,
  ]
  return [`GET ${path} HTTP/1.1`, 'Host: agent', ...lines, '', ''].join('\r\n')
}
