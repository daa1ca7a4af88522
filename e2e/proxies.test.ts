import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type Kernel from '@onkernel/sdk'
import { chromium, type Page } from 'playwright-core'
import { Berth } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { startPages } from './testing/pages.ts'
import { browserProcess, egressProcess, listProcesses } from './testing/processes.ts'
import { type ExitProxy, startExitProxy, testCaBundle } from './testing/servers/exit-proxy.ts'

const credentials = { username: 'us-er', password: 'p@ss:w%rd/é' }
const dataFolder = await mkdtemp(join(tmpdir(), 'berth-e2e-'))
const pages = await startPages()
const one = await startExitProxy({ name: 'exit one', credentials })
const two = await startExitProxy({ name: 'exit two', protocol: 'socks5', credentials })
const three = await startExitProxy({ name: 'exit three', protocol: 'https', credentials })
const broken = await startBrokenProxies()
const environment = {
  BERTH_EGRESS_ALLOW: [
    pages.allowed,
    ...[one, two, three, ...Object.values(broken)].map(({ port }) => `127.0.0.1:${port}`),
    `host.berth.internal:${one.port}`,
  ].join(),
  BERTH_PROXY_CHECK_URL: 'http://echo.test/ip',
  BERTH_STEALTH_PROXY: `http://us-er:${encodeURIComponent(credentials.password)}@127.0.0.1:${one.port}`,
}
let berth = await Berth.start({ dataFolder, flags: ['--log-level', 'trace'], environment })
let client = await berth.client()
let logs = ''
after(async () => {
  await berth[Symbol.asyncDispose]()
  await rm(dataFolder, { recursive: true })
  for (const opened of [pages, one, two, three, ...Object.values(broken)]) await opened[Symbol.asyncDispose]()
})

test('a session uses its proxy with a secret password, and another proxy without losing its pages', async () => {
  const first = await customProxy(one, 'http')
  await customProxy(two, 'socks5', { name: 'the second' })
  const session = await client.browsers.create({
    proxy_id: first.id as string,
    start_url: 'http://start.test/',
    timeout_seconds: 300,
  })
  const id = session.session_id
  const watcher = await CdpClient.open(session.cdp_ws_url)
  let { page, close } = await firstPage(session.cdp_ws_url)

  await one.untilSeen('CONNECT start.test:80')
  await page.goto('http://page.test/')
  assert.equal(await page.textContent('p'), 'exit one')
  assert.equal(await echoBySocket(page, 'ws://ws.test/'), 'exit one hello')
  assert.equal(await errorOf(page, 'https://secure.test/'), 'ERR_CERT_AUTHORITY_INVALID')
  await page.goto('http://page.test/kept')
  assert.equal(await page.evaluate(bytesOf, 'http://page.test/big'), 24 * 1024 * 1024)
  await page.evaluate(keepState)
  const byFirst = one.connections

  const updated = await update(id, { proxy: { name: 'the second' } })

  assert.equal(updated.proxy_id, updated.proxy.id)
  assert.equal(await page.evaluate(readState), 'kept, and a socket that was closed')
  assert.equal(await page.evaluate(titleOf, 'http://page.test/'), 'exit two')
  assert.equal(await page.evaluate(bytesOf, 'http://page.test/big'), 24 * 1024 * 1024)
  assert.equal(await echoBySocket(page, 'ws://ws.test/'), 'exit two hello')
  assert.equal(await errorOf(page, 'https://secure.test/'), 'ERR_CERT_AUTHORITY_INVALID')
  assert.equal(one.connections, byFirst)
  assert.deepEqual(
    ['CONNECT start.test:80', 'CONNECT page.test:80', 'CONNECT ws.test:80', 'CONNECT secure.test:443'].filter(
      (entry) => !one.seen.includes(entry),
    ),
    [],
  )
  assert.deepEqual(
    ['SOCKS page.test:80', 'SOCKS ws.test:80', 'SOCKS secure.test:443'].filter((entry) => !two.seen.includes(entry)),
    [],
  )
  assert.equal(one.challenges + two.challenges, 0)
  assert.ok((await watcher.send('Browser.getVersion')).product)
  await watcher.close()
  await close()

  process.kill(await browserProcess(id), 'SIGKILL')
  ;({ page, close } = await firstPage(session.cdp_ws_url))
  await page.goto('http://page.test/after-the-crash')
  assert.equal(await page.textContent('p'), 'exit two')

  process.kill(await egressProcess(dataFolder), 'SIGKILL')
  await retry(() => page.goto('http://page.test/after-egress'))
  assert.equal(await page.textContent('p'), 'exit two')
  const listed = await Array.fromAsync(client.browsers.list({ query: updated.proxy_id }))
  assert.deepEqual(
    listed.map(({ session_id }) => session_id),
    [id],
  )

  await restartBerth()
  ;({ page, close } = await firstPage((await client.browsers.retrieve(id)).cdp_ws_url))
  await page.goto('http://page.test/after-the-server')
  assert.equal(await page.textContent('p'), 'exit two')
  await update(id, { disable_default_proxy: true })
  await page.goto(`${pages.url}/`)
  assert.equal(await page.title(), 'Home')
  await client.browsers.deleteByID(id)
  await assertSecret()
})

test('a broken proxy is an error, and never leads to a direct connection', async () => {
  const canaryVisits = () => pages.requests.filter((path) => path.startsWith('/canary')).length
  const errors: Record<string, readonly (string | undefined)[]> = {}
  const statuses: Record<string, string | undefined> = {}
  const createBroken = async (kind: keyof typeof broken) => {
    const config = { host: '127.0.0.1', port: broken[kind].port }
    return (await client.proxies.create({ type: 'custom', protocol: 'http', config })).id as string
  }
  const visitWith = async (kinds: readonly (keyof typeof broken)[]) => {
    const proxyIds = await Promise.all(kinds.map(createBroken))
    const session = await client.browsers.create({
      headless: true,
      timeout_seconds: 300,
      proxy_id: proxyIds[0] as string,
      start_url: `${pages.url}/canary`,
    })
    const browser = await chromium.connectOverCDP(session.cdp_ws_url)
    const context = browser.contexts()[0]
    const open = async () => (await context?.newPage()) as Page
    const start = context?.pages()[0] as Page
    for (const [index, kind] of kinds.entries()) {
      const proxyId = proxyIds[index] as string
      if (index > 0) await update(session.session_id, { proxy_id: proxyId })
      const checked = client.proxies.check(proxyId)
      errors[kind] = await Promise.all([
        errorOf(start, `${pages.url}/canary`),
        errorOf(start, 'https://canary.test/canary'),
        open().then((page) => echoBySocket(page, `ws://host.berth.internal:${pages.port}/canary`)),
      ])
      statuses[kind] = (await checked).status
      assert.equal(canaryVisits(), 0)
    }

    await update(session.session_id, { proxy_id: '' })
    const page = await open()
    await page.goto(`${pages.url}/`)
    assert.equal(await page.title(), 'Home')
    await browser.close()
    await client.browsers.deleteByID(session.session_id)
  }

  await Promise.all([visitWith(['silent']), visitWith(['closed', 'failing', 'asking'])])

  assert.deepEqual(errors, {
    closed: ['ERR_HTTP_RESPONSE_CODE_FAILURE', 'ERR_CONNECTION_RESET', 'closed 1006'],
    failing: ['ERR_HTTP_RESPONSE_CODE_FAILURE', 'ERR_CONNECTION_RESET', 'closed 1006'],
    asking: ['ERR_HTTP_RESPONSE_CODE_FAILURE', 'ERR_CONNECTION_RESET', 'closed 1006'],
    silent: ['ERR_HTTP_RESPONSE_CODE_FAILURE', 'ERR_CONNECTION_RESET', 'closed 1006'],
  })
  assert.deepEqual(new Set(Object.values(statuses)), new Set(['unavailable']))
})

test('routes send single hosts through their own proxies, and never fall back', async () => {
  const byDefault = await customProxy(one, 'http', { bypass_hosts: ['127.0.0.1.nip.test'] })
  const routed = await customProxy(two, 'socks5', { name: 'for routes' })
  const trusted = await customProxy(three, 'https', {}, { ca_bundle: testCaBundle })
  const session = await create({
    headless: true,
    timeout_seconds: 300,
    start_url: 'http://www.routed.test/start',
    proxy: { id: byDefault.id },
    network: {
      private_hosts: ['db.internal', '10.0.0.0/24'],
      proxy_routes: [
        { hosts: ['*.Routed.test', 'single.test'], proxy: { name: 'for routes' } },
        { hosts: ['exact.routed.test', 'secure.test'], proxy: { id: trusted.id } },
      ],
    },
  })
  const { page, close } = await firstPage(session.cdp_ws_url)
  const exitOf = async (url: string) => {
    await page.goto(url)
    return page.title()
  }

  await one.untilSeen('CONNECT www.routed.test:80')
  assert.deepEqual(session.network.proxy_routes[0], {
    hosts: ['*.routed.test', 'single.test'],
    proxy: { id: routed.id },
  })
  await page.waitForLoadState()
  assert.equal(await page.title(), 'exit one')
  await one.closeConnections()
  assert.equal(await exitOf('http://www.routed.test/next'), 'exit two')
  assert.equal(await exitOf('http://single.test:8080/'), 'exit two')
  assert.equal(await exitOf('http://routed.test/'), 'exit one')
  assert.equal(await exitOf('http://exact.routed.test/'), 'exit three')
  assert.equal(await exitOf('https://secure.test/'), 'exit three')
  assert.equal(await exitOf('http://10.0.1.1/'), 'exit one')
  assert.match(String(await errorOf(page, 'http://10.0.0.7/')), /^ERR_/)
  assert.equal(one.seen.includes('CONNECT 10.0.0.7:80'), false)

  await assert.rejects(update(session.session_id, { proxy: { id: trusted.id } }), /CA bundle/)
  await client.proxies.delete(trusted.id as string)
  await client.proxies.delete(byDefault.id as string)

  assert.equal(await errorOf(page, 'https://secure.test/'), 'ERR_CONNECTION_RESET')
  assert.equal(await errorOf(page, 'http://exact.routed.test/'), 'ERR_HTTP_RESPONSE_CODE_FAILURE')
  assert.equal(await exitOf(`${pages.url}/`), 'Home')
  assert.equal(await exitOf('http://single.test/'), 'exit two')
  await close()
  await client.browsers.deleteByID(session.session_id)
})

test('a stealth session uses the proxy of the operator unless that is switched off', async () => {
  const session = await create({ headless: true, stealth: true, timeout_seconds: 300 })
  const { page, close } = await firstPage(session.cdp_ws_url)
  await page.goto('http://stealth.test/')
  const byDefault = await page.title()
  await errorOf(page, 'http://10.0.0.7/')

  const direct = await update(session.session_id, { disable_default_proxy: true })
  await page.goto(`${pages.url}/`)
  const home = await page.title()
  const restored = await update(session.session_id, { proxy: { mode: 'default' } })
  await page.goto('http://stealth.test/again')

  assert.equal(byDefault, 'exit one')
  assert.equal(home, 'Home')
  assert.equal(await page.title(), 'exit one')
  assert.deepEqual(
    [session, direct, restored].map(({ proxy, disable_default_proxy }) => [proxy.mode, disable_default_proxy]),
    [
      ['default', false],
      ['direct', true],
      ['default', false],
    ],
  )
  assert.equal(one.seen.includes('CONNECT 10.0.0.7:80'), false)
  await close()
  await client.browsers.deleteByID(session.session_id)
})

test('programs use the proxy of their session, and a context its own proxy', async () => {
  const proxy = await customProxy(two, 'socks5')
  const session = await create({ headless: true, timeout_seconds: 300, proxy: { id: proxy.id } })
  const ask = (host: string) =>
    client.browsers.process.exec(session.session_id, {
      command: '/bin/bash',
      args: ['-c', `exec 3<>/dev/tcp/${host}/80; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3`],
    })
  const browser = await chromium.connectOverCDP(session.cdp_ws_url)

  const byName = await ask('program.test')
  const byAddress = await ask('45.6.7.8')
  await update(session.session_id, { proxy: { mode: 'direct' } })
  const server = `http://host.berth.internal:${one.port}`
  const context = await browser.newContext({ proxy: { server, ...credentials } })
  const page = await context.newPage()
  await page.goto('http://page-of-context.test/')

  for (const { stdout_b64 } of [byName, byAddress])
    assert.match(Buffer.from(stdout_b64 ?? '', 'base64').toString(), /exit two/)
  assert.ok(two.seen.includes('SOCKS program.test:80'))
  assert.equal(await page.title(), 'exit one')
  assert.ok(one.seen.includes('GET http://page-of-context.test/'))
  await browser.close()
  await client.browsers.deleteByID(session.session_id)
})

test('pages and programs of a session reach only its allowed hosts, also after a change', async () => {
  const proxy = await customProxy(one, 'http')
  const session = await create({
    headless: true,
    timeout_seconds: 300,
    proxy: { id: proxy.id },
    network: { allowed_hosts: ['*.good.test', '45.0.0.0/8'] },
  })
  const { page, close } = await firstPage(session.cdp_ws_url)
  const visit = async (url: string) => {
    const answer = await page.goto(url)
    return answer?.headers()['x-kernel-proxy-error'] ?? page.title()
  }

  const before = [await visit('http://a.good.test/'), await visit('http://45.1.1.1/'), await visit('http://bad.test/')]
  const secure = await errorOf(page, 'https://bad.test/')
  const changed = await update(session.session_id, { network: { allowed_hosts: ['bad.test'] } })
  const after = [await visit('http://bad.test/'), await visit('http://a.good.test/')]

  assert.deepEqual(before, ['exit one', 'exit one', 'network_policy_denied'])
  assert.equal(secure, 'ERR_CONNECTION_RESET')
  assert.deepEqual(changed.network, { allowed_hosts: ['bad.test'] })
  assert.deepEqual(after, ['exit one', 'network_policy_denied'])
  await close()
  await client.browsers.deleteByID(session.session_id)
})

test('a check measures through the proxy, and gives no access to the host', async () => {
  await using inner = await listen(createTcpServer((socket) => socket.destroy()))
  const { url } = pages
  const good = await customProxy(three, 'https', {}, { ca_bundle: testCaBundle })
  const untrusted = await customProxy(three, 'https')
  const wrong = await client.proxies.create({
    type: 'custom',
    protocol: 'http',
    config: { host: '127.0.0.1', port: one.port, username: 'us-er', password: 'another' },
  })
  const hostile = await client.proxies.create({
    type: 'custom',
    protocol: 'http',
    config: { host: '127.0.0.1', port: inner.port },
  })
  const check = async ({ id }: { id?: string }, body?: { url: string }) => {
    const answer = await berth.request(`/proxies/${id}/check`, {
      method: 'POST',
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    return { status: answer.status, body: (await answer.json()) as Kernel.ProxyCheckResponse & { latency_ms?: number } }
  }

  const checked = await check(good)
  const refused = await Promise.all(
    [url, 'http://169.254.169.254/', 'http://10.0.0.1/', 'ftp://1.2.3.4/', 'nonsense'].map((target) =>
      check(good, { url: target.replace(String(pages.port), '9') }),
    ),
  )
  const byUrl = await check(wrong, { url: 'https://1.2.3.4/' })

  assert.equal(checked.body.status, 'available')
  assert.equal(checked.body.ip_address, '203.0.113.9')
  assert.equal(typeof checked.body.latency_ms, 'number')
  assert.deepEqual((await client.proxies.retrieve(good.id as string)).last_checked, checked.body.last_checked)
  assert.deepEqual(
    refused.map(({ status }) => status),
    [400, 400, 400, 400, 400],
  )
  assert.equal(byUrl.body.status, 'unavailable')
  assert.equal((await client.proxies.retrieve(wrong.id as string)).status, undefined)
  for (const proxy of [untrusted, wrong, hostile]) assert.equal((await check(proxy)).body.status, 'unavailable')
  assert.equal(inner.connections, 0)
  await assertSecret()
})

async function customProxy(
  { port }: ExitProxy,
  protocol: string,
  more: Record<string, unknown> = {},
  config: Record<string, unknown> = {},
): Promise<Kernel.ProxyCreateResponse> {
  return client.proxies.create({
    type: 'custom',
    protocol,
    config: { host: '127.0.0.1', port, ...credentials, ...config },
    ...more,
  } as Kernel.ProxyCreateParams)
}

/** Responses for which this version of the client has no types. */
// biome-ignore lint/suspicious/noExplicitAny: the fields are looked at by the tests alone.
type AnyRecord = any

function create(body: AnyRecord): Promise<AnyRecord> {
  return client.browsers.create(body)
}

function update(id: string, body: AnyRecord): Promise<AnyRecord> {
  return client.browsers.update(id, body)
}

async function firstPage(address: string): Promise<{ page: Page; close: () => Promise<void> }> {
  const browser = await retry(() => chromium.connectOverCDP(address))
  const page = browser.contexts()[0]?.pages()[0] as Page
  return { page, close: () => browser.close() }
}

/** Opens the page in a new tab: an error page arrives later and would disturb the next one. */
async function errorOf(page: Page, url: string): Promise<string | undefined> {
  const tab = await page.context().newPage()
  const failure = await tab.goto(url, { timeout: 60_000 }).then(
    () => undefined,
    (error: Error) => /net::(\w+)/.exec(error.message)?.[1] ?? error.message,
  )
  await tab.close()
  return failure
}

/** For requests that may fail shortly after a part was killed. */
async function retry<Value>(attempt: () => Promise<Value>): Promise<Value> {
  const deadline = performance.now() + 15_000
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (performance.now() > deadline) throw error
    }
  }
}

async function restartBerth(): Promise<void> {
  await berth.signal('SIGKILL')
  logs += berth.log
  berth = await Berth.start({ dataFolder, flags: ['--log-level', 'trace'], environment })
  client = await berth.client()
}

/** Searches for the password, plain and encoded, in everything that must not contain it. */
async function assertSecret(): Promise<void> {
  const { username, password } = credentials
  const spellings = [password, encodeURIComponent(password), Buffer.from(`${username}:${password}`).toString('base64')]
  const commands = (await listProcesses())
    .map(({ command }) => command)
    .filter((command) => !command.includes('proxies.test'))
  const records = JSON.stringify(await Array.fromAsync(client.proxies.list()))
  const sessions = await (await berth.request('/browsers?status=all')).text()
  const egressLog = await readFile(join(dataFolder, 'egress.log'), 'utf8')
  const places = { commands: commands.join('\n'), records, sessions, logs: logs + berth.log, egressLog }

  const found = Object.entries(places).filter(([, text]) => spellings.some((spelling) => text.includes(spelling)))
  assert.deepEqual(
    found.map(([place]) => place),
    [],
  )
  assert.match(records, /"has_password":true/)
}

interface Listener extends AsyncDisposable {
  readonly port: number
  readonly connections: number
}

async function listen(server: Server): Promise<Listener> {
  let connections = 0
  server.on('connection', (socket) => {
    connections += 1
    socket.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections
    },
    async [Symbol.asyncDispose]() {
      server.close()
    },
  }
}

async function startBrokenProxies() {
  const closed = await listen(createTcpServer())
  await closed[Symbol.asyncDispose]()
  const answering = (status: number, headers = {}) => {
    const server = createServer((_request, response) => response.writeHead(status, headers).end())
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    server.on('connect', (_request, socket) => socket.end(`HTTP/1.1 ${status} No\r\n${lines.join('')}\r\n`))
    return listen(server)
  }
  return {
    closed,
    failing: await answering(502),
    asking: await answering(407, { 'proxy-authenticate': 'Basic realm="for ever"' }),
    silent: await listen(createTcpServer()),
  }
}

async function keepState(): Promise<void> {
  const socket = new WebSocket('ws://ws.test/')
  const state = Object.assign(globalThis, { kept: 'kept, and a socket that is open' })
  socket.onclose = () => {
    state.kept = 'kept, and a socket that was closed'
  }
  await new Promise((resolve) => {
    socket.onopen = resolve
  })
}

function readState(): string {
  return (globalThis as unknown as { kept: string }).kept
}

async function titleOf(url: string): Promise<string> {
  return /<title>(.*)<\/title>/.exec(await (await fetch(url)).text())?.[1] ?? ''
}

async function bytesOf(url: string): Promise<number> {
  return (await (await fetch(url)).arrayBuffer()).byteLength
}

async function echoBySocket(page: Page, url: string): Promise<string> {
  return page.evaluate(
    (address) =>
      new Promise<string>((resolve) => {
        const socket = new WebSocket(address)
        socket.onopen = () => socket.send('hello')
        socket.onmessage = ({ data }) => {
          socket.onclose = null
          socket.close()
          resolve(data)
        }
        socket.onclose = ({ code }) => resolve(`closed ${code}`)
      }),
    url,
  )
}
