import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { json, text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { chromium } from 'playwright-core'
import puppeteer from 'puppeteer-core'
import WebSocket from 'ws'
import { rounds } from './fault/testing/deep.ts'
import { until } from './fault/testing/until.ts'
import { Berth, oneServerOnly } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { memoryMiB, serviceProcesses } from './testing/processes.ts'
import { within } from './testing/within.ts'

const mebibyte = 1024 * 1024
const berth = await Berth.borrow()
const client = await berth.client()
after(() => berth[Symbol.asyncDispose]())

type Use = (session: { session_id: string; cdp_ws_url: string; base_url?: string }) => Promise<void>

let shared: Awaited<ReturnType<typeof client.browsers.create>> | undefined

/** For tests that only connect. The session ends with the berth. */
async function withSharedSession(use: Use): Promise<void> {
  shared ??= await client.browsers.create({ headless: true, timeout_seconds: 300 })
  await use(shared)
}

async function withSession(use: Use): Promise<void> {
  const session = await client.browsers.create({ headless: true, timeout_seconds: 300 })
  try {
    await use(session)
  } finally {
    await client.browsers.deleteByID(session.session_id)
  }
}

test('the browser can send more than 100 MiB, and a message that it refuses only disconnects its sender (case 1)', () =>
  withSession(async ({ cdp_ws_url, session_id }) => {
    const before = await memoryMiB(await serviceProcesses(berth.pid))
    const cdp = await CdpClient.open(cdp_ws_url)
    const page = await cdp.openPage()

    assert.equal(await cdp.evaluate(page, `7 /* ${' '.repeat(60 * mebibyte)} */`), 7)
    assert.equal(String(await cdp.evaluate(page, `'x'.repeat(${120 * mebibyte})`)).length, 120 * mebibyte)
    const second = await CdpClient.open(cdp_ws_url)
    second.socket.send(
      JSON.stringify({ id: 1, method: 'Browser.getVersion', params: { padding: ' '.repeat(110 * mebibyte) } }),
    )
    await once(second.socket, 'close', { signal: AbortSignal.timeout(60_000) })

    await within(60_000, cdp.send('Browser.getVersion'))
    assert.equal((await client.browsers.retrieve(session_id)).session_id, session_id)
    await cdp.close()
    await until('little memory', async () => (await memoryMiB(await serviceProcesses(berth.pid))) - before < 200, {
      limitSeconds: 60,
      everyMilliseconds: 200,
    })
  }))

test('Playwright and Puppeteer connect with the HTTP form of the address', () =>
  withSharedSession(async ({ cdp_ws_url }) => {
    const browser = await chromium.connectOverCDP(cdp_ws_url.replace(/^ws/, 'http'))
    assert.equal(browser.contexts()[0]?.pages().length, 1)
    await browser.close()
    const version = await fetch(cdp_ws_url.replace(/^ws/, 'http').replace('/cdp?', '/json/version?'))
    const { webSocketDebuggerUrl } = (await version.json()) as { webSocketDebuggerUrl: string }
    const other = await puppeteer.connect({ browserWSEndpoint: webSocketDebuggerUrl })
    assert.equal((await other.pages()).length, 1)
    await other.disconnect()
  }))

const ownNameOnly = oneServerOnly('several have BERTH_PUBLIC_URL, which all addresses begin with')
for (const host of ['127.0.0.1', 'localhost', 'browsers.test']) {
  test(`discovery and handshake work for the host name ${host} (case 2)`, host === '127.0.0.1' ? {} : ownNameOnly, () =>
    withSharedSession(async ({ cdp_ws_url }) => {
      const address = new URL(cdp_ws_url)
      const authority = `${host}:${address.port}`
      for (const root of [address.pathname.replace(/\/cdp$/, ''), address.pathname, '']) {
        const version = await ask(`${root}/json/version${address.search}`)
        const targets = await ask(`${root}/json/list${address.search}`)

        assert.equal(version.status, 200)
        assert.equal(targets.status, 200)
        const sockets = [version.body, ...(targets.body as object[])] as { webSocketDebuggerUrl: string }[]
        for (const { webSocketDebuggerUrl } of sockets) {
          assert.ok(webSocketDebuggerUrl.startsWith(`ws://${authority}/s/`), webSocketDebuggerUrl)
          const reachable = webSocketDebuggerUrl.replace(authority, address.host)
          const cdp = await CdpClient.open(reachable, { headers: { host: authority } })
          assert.ok(await cdp.send('Runtime.evaluate', { expression: '1' }).catch(() => cdp.send('Browser.getVersion')))
          await cdp.close()
        }
      }
      assert.equal((await ask(`${address.pathname}/json/new${address.search}&about:blank`)).status, 405)
      const before = ((await ask(`/json/list${address.search}`)).body as unknown[]).length
      assert.equal((await ask(`${address.pathname}/json/new${address.search}&about:blank`, 'PUT')).status, 200)
      assert.equal(((await ask(`/json/list${address.search}`)).body as unknown[]).length, before + 1)

      async function ask(path: string, method = 'GET'): Promise<{ status: number | undefined; body: unknown }> {
        const asked = request({ host: '127.0.0.1', port: address.port, path, method, headers: { host: authority } })
        asked.end()
        const [response] = await once(asked, 'response')
        const isJson = String(response.headers['content-type']).includes('json')
        return { status: response.statusCode, body: isJson ? await json(response) : await text(response) }
      }
    }),
  )
}

test('clients of one session do not affect each other (case 3)', () =>
  withSession(async ({ cdp_ws_url, session_id }) => {
    const count = rounds({ short: 200, deep: 500 })
    const raw = await CdpClient.open(cdp_ws_url)
    const rawPage = await raw.openPage()
    const playwright = await chromium.connectOverCDP(cdp_ws_url)
    const page = await (playwright.contexts()[0] ?? (await playwright.newContext())).newPage()
    const way = await openResettableRelay(cdp_ws_url)
    const browser = await puppeteer.connect({ browserWSEndpoint: way.address })
    const doomed = await browser.newPage()

    let doomedAnswers = 0
    const [rawTokens, playwrightTokens] = await Promise.all([
      collect((token) => raw.evaluate(rawPage, `'${token}'`)),
      collect((token) => page.evaluate(`'${token}'`)),
      collect(async (token) => {
        if (doomedAnswers === count / 2) way.reset()
        assert.equal(await doomed.evaluate(`'${token}'`), token)
        doomedAnswers++
        return token
      }).catch(() => {}),
    ])

    assert.ok(rawTokens.every(({ sent, received }) => sent === received) && rawTokens.length === count)
    assert.ok(playwrightTokens.every(({ sent, received }) => sent === received) && playwrightTokens.length === count)
    assert.ok(doomedAnswers >= count / 2)
    assert.ok(raw.events.every(({ sessionId }) => sessionId === undefined || sessionId === rawPage))
    const { targetInfos } = await raw.send('Target.getTargets')
    assert.ok((targetInfos as { type: string }[]).filter(({ type }) => type === 'page').length >= 3)
    assert.equal(await page.evaluate('1'), 1)
    assert.equal((await client.browsers.retrieve(session_id)).session_id, session_id)
    await playwright.close()
    await raw.close()

    async function collect(ask: (token: string) => Promise<unknown>): Promise<{ sent: string; received: unknown }[]> {
      const answers: { sent: string; received: unknown }[] = []
      for (let round = 0; round < count; round++) {
        const sent = randomBytes(8).toString('hex')
        answers.push({ sent, received: await ask(sent) })
      }
      return answers
    }
  }))

test('a client that stops reading delays nobody and misses nothing (case 4)', () =>
  withSession(async ({ cdp_ws_url }) => {
    const count = 2_400
    const before = await memoryMiB(await serviceProcesses(berth.pid))
    const slow = await CdpClient.open(cdp_ws_url)
    const page = await slow.openPage()
    await slow.send('Runtime.enable', {}, page)
    const quick = await CdpClient.open(cdp_ws_url)
    socketOf(slow.socket).pause()

    slow.socket.send(
      JSON.stringify({
        id: 9_999_999,
        sessionId: page,
        method: 'Runtime.evaluate',
        params: { expression: `for (let i = 0; i < ${count}; i++) console.log(i + ':' + 'x'.repeat(65536))` },
      }),
    )
    const latencies: number[] = []
    const commands = rounds({ short: 25, deep: 100 })
    for (let round = 0; round < commands; round++) {
      const start = performance.now()
      await quick.send('Browser.getVersion')
      latencies.push(performance.now() - start)
      await delay(200)
    }
    const grown = (await memoryMiB(await serviceProcesses(berth.pid))) - before
    socketOf(slow.socket).resume()

    const numbers = () => slow.events.filter(({ method }) => method === 'Runtime.consoleAPICalled').map(numberOf)
    await until('every message', () => numbers().length === count || slow.socket.readyState === WebSocket.CLOSED, {
      limitSeconds: 60,
      everyMilliseconds: 200,
    })
    assert.ok(grown < 128, `grew by ${grown} MiB`)
    // A client behind the slow one would wait for it without end.
    assert.ok(Math.max(...latencies) < 10_000, `${Math.max(...latencies)} ms`)
    assert.deepEqual(
      numbers(),
      Array.from({ length: numbers().length }, (_, index) => index),
      'in order, without a gap',
    )
    await slow.close()
    await quick.close()
  }))

test('Browser.close of a raw client is answered and only closes its connection', () =>
  withSharedSession(async ({ cdp_ws_url }) => {
    const [first, second] = [await CdpClient.open(cdp_ws_url), await CdpClient.open(cdp_ws_url)]

    const closed = once(first.socket, 'close')
    assert.deepEqual(await first.send('Browser.close'), {})
    const [code] = await closed

    assert.equal(code, 1000)
    assert.ok(await second.send('Browser.getVersion'))
    await second.close()
  }))

test('a page has a websocket of its own', () =>
  withSharedSession(async ({ cdp_ws_url }) => {
    const list = await fetch(cdp_ws_url.replace(/^ws/, 'http').replace('/cdp?', '/json/list?'))
    const [target] = (await list.json()) as { webSocketDebuggerUrl: string }[]
    const page = await CdpClient.open(target?.webSocketDebuggerUrl ?? '')

    const { result } = await page.send('Runtime.evaluate', { expression: '6 * 7' })

    assert.deepEqual(result, { type: 'number', value: 42, description: '42' })
    await page.close()
  }))

function socketOf(socket: WebSocket): Socket {
  return (socket as unknown as { _socket: Socket })._socket
}

/** A relay to the address whose connections the test can reset, like a client that dies. */
async function openResettableRelay(address: string) {
  const { port } = new URL(address)
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const service = connect(Number(port), '127.0.0.1')
    open.add(service)
    service.on('error', () => {})
    service.on('close', () => client.destroy())
    client.on('error', () => service.destroy())
    client.pipe(service).pipe(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: address.replace(`:${port}`, `:${(server.address() as AddressInfo).port}`),
    reset() {
      server.close()
      for (const socket of open) socket.resetAndDestroy()
    },
  }
}

function numberOf({ params = {} }: { readonly params?: Record<string, unknown> }): number {
  const [argument] = params.args as { value: string }[]
  return Number.parseInt(argument?.value ?? '', 10)
}
