import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { after, test } from 'node:test'
import Kernel from '@onkernel/sdk'
import { chromium, type Page } from 'playwright-core'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { startPages } from './testing/pages.ts'
import { browserProcess } from './testing/processes.ts'
import { startForwardProxy } from './testing/servers/forward-proxy.ts'

const pages = await startPages()
const proxy = await startForwardProxy()
// A session in standby does not notice that its browser is killed.
const environment = {
  BERTH_STANDBY: 'off',
  BERTH_EGRESS_ALLOW: `${proxy.host}:${proxy.port}`,
  BERTH_CAPTCHA_SOLVER_URL: `${pages.hostUrl}/solve`,
}
const berth = await Berth.start({ environment })
after(async () => {
  for (const opened of [berth, proxy, pages]) await opened[Symbol.asyncDispose]()
})
/** The client's types lack newer event types. */
const client = new Kernel({ apiKey: berth.apiKey, baseURL: berth.url, maxRetries: 0 })

interface Event {
  readonly type: string
  readonly category: string
  readonly ts: number
  readonly source: { readonly kind: string; readonly event?: string }
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what its page has done.
  readonly data?: any
}

interface Envelope {
  readonly seq: number
  readonly event: Event
}

/** The proxy leads every name to the pages of this test. */
const at = (host: string, path = '/') => `http://${host}:${pages.port}${path}`

pages.serve('/shop', (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/html' })
  response.end(`<!doctype html><title>Shop</title><style>body{height:4000px;margin:0}</style>
    <h1>Shop with a large heading</h1><button id=buy style="width:200px;height:80px">Buy now</button>
    <input id=name><input id=pin type=password><div id=space></div><p>below</p>
    <script>
      console.log('hello', {a: 1}, 5)
      console.error('bad', 'worse')
      setTimeout(() => { throw new Error('nobody catches this') })
      setTimeout(() => { document.getElementById('space').style.height = '300px' }, 200)
      fetch('/data').then((answer) => answer.json())
      fetch('/picture')
      fetch('http://closed.test:9/').catch(() => {})
      new Image().src = 'https://unreachable.test:81/picture'
    </script>`)
})
pages.serve('/data', (_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ text: 'x'.repeat(20_000) }))
})
pages.serve('/picture', (_request, response) => {
  response.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.alloc(100, 1))
})
pages.serve(
  '/login',
  `<!doctype html><title>Login</title><textarea name=h-captcha-response></textarea>
   <iframe src="${at('newassets.hcaptcha.com', '/captcha/v1/frame')}" width=300 height=200></iframe>`,
)
const widget = '<div class=h-captcha data-sitekey=the-site-key data-callback=takeAnswer></div>'
pages.serve(
  '/guarded',
  `<!doctype html><title>Guarded</title><form>${widget}</form>
   <iframe src="${at('newassets.hcaptcha.com', '/captcha/v1/frame')}" width=300 height=200></iframe>
   <script>function takeAnswer(token) { document.title = 'Answered with ' + token }</script>`,
)
const asked: Record<string, unknown>[] = []
pages.serve('/solve', async (request, response) => {
  const task = (await json(request)) as Record<string, unknown>
  asked.push(task)
  const isFirst = asked.length === 1
  response.writeHead(isFirst ? 422 : 200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(isFirst ? { error_code: 'unsolvable' } : { token: `token-for-${task.site_key}` }))
})
pages.serve('/captcha/v1/frame', '<!doctype html>Are you human?')
pages.serve(
  '/slide',
  `<!doctype html><title>Slide</title><script src="${at('static.geetest.com', '/v4/gt4.js')}"></script>
   <div class=geetest_holder style="width:300px;height:80px">Slide to verify</div><input name=geetest_validate type=hidden>`,
)
let isHeld = false
pages.serve('/hold', (_request, response) => {
  const challenge = `<script src="${at('captcha.px-cdn.net', '/PX1/captcha.js')}"></script>
    <div id=px-captcha style="width:300px;height:80px">Press and hold</div>`
  response.writeHead(200, { 'content-type': 'text/html' })
  response.end(`<!doctype html><title>Hold</title>${isHeld ? 'Welcome' : challenge}`)
})

class Reading {
  readonly events: Envelope[] = []
  readonly ended: Promise<void>

  constructor(stream: AsyncIterable<unknown>) {
    this.ended = (async () => {
      for await (const envelope of stream) this.events.push(envelope as Envelope)
    })()
    this.ended.catch(() => {})
  }

  of(type: string): readonly Event[] {
    return this.events.flatMap(({ event }) => (event.type === type ? [event] : []))
  }

  async next(type: string, fits: (data: Event['data']) => boolean = () => true): Promise<Event> {
    const find = () => this.of(type).find(({ data }) => fits(data))
    await until(type, async () => find() !== undefined, { limitSeconds: 30, everyMilliseconds: 50 }).catch(
      (error: unknown) => {
        const seen = [...new Set(this.events.map(({ event }) => event.type))]
        throw new Error(`${error}; seen: ${seen.join(', ')}`)
      },
    )
    return find() as Event
  }
}

const categories = [
  'control',
  'connection',
  'system',
  'captcha',
  'console',
  'network',
  'page',
  'interaction',
  'screenshot',
  'platform',
]

interface ApiDocument {
  // biome-ignore lint/suspicious/noExplicitAny: schemas of JSON Schema
  readonly components: { readonly schemas: Readonly<Record<string, any>> }
}

/** Event types that this file does not cause, with the tests that do. */
const causedElsewhere: Readonly<Record<string, string>> = {
  live_view_connect: 'live-view.test.ts',
  live_view_disconnect: 'live-view.test.ts',
  monitor_events_lost: '../packages/server/src/features/telemetry/telemetry.test.ts',
  monitor_init_failed: '../packages/agent/src/telemetry/telemetry-collector.test.ts',
  // Without control groups the memory of machines is not limited.
  ...(process.geteuid?.() !== 0 && { system_oom_kill: 'telemetry.test.ts' }),
}

test('every type of event is caused, and read with the official client', { timeout: 120_000 }, async (context) => {
  const { id: proxyId = '' } = await client.proxies.create({
    type: 'custom',
    protocol: 'http',
    config: { host: proxy.host, port: proxy.port },
  } as Kernel.ProxyCreateParams)
  const browser = Object.fromEntries(categories.map((category) => [category, { enabled: true }]))
  const session = await client.browsers.create({
    headless: true,
    timeout_seconds: 300,
    proxy_id: proxyId,
    telemetry: { enabled: true, browser },
  })
  const id = session.session_id
  const seen = new Reading(await client.browsers.telemetry.stream(id))
  const playwright = await chromium.connectOverCDP(session.cdp_ws_url)
  const page = playwright.contexts()[0]?.pages()[0] as Page

  await context.test('control, connection and platform', async () => {
    await client.browsers.computer.moveMouse(id, { x: 5, y: 5 })
    await client.browsers.playwright.execute(id, { code: `return '${'x'.repeat(9_000)}'.length` })
    await client.browsers.fs.listFiles(id, { path: '/tmp' })
    await assert.rejects(client.browsers.fs.readFile(id, { path: '/nowhere' }))

    const moved = await seen.next('api_call', ({ operation_id }) => operation_id === 'moveMouse')
    assert.equal(moved.source.kind, 'kernel_api')
    assert.equal(moved.data.status, 204 === moved.data.status ? 204 : 200)
    const { data } = await seen.next('api_call', ({ operation_id }) => operation_id === 'executePlaywrightCode')
    assert.equal(Buffer.byteLength(data.code), 8_192)
    assert.match(data.code, /\.\.\.\[truncated\]$/)
    assert.equal(
      (await seen.next('platform_api_call', ({ operation_id }) => operation_id === 'listFiles')).data.status,
      200,
    )
    assert.equal(
      (await seen.next('platform_api_call', ({ operation_id }) => operation_id === 'readFile')).data.status,
      404,
    )
    const connected = await seen.next('cdp_connect')
    assert.equal(typeof connected.data.connection_id, 'string')
  })

  await context.test('page, network and console', async () => {
    await page.goto(at('shop.test', '/shop?secret=in-the-address'))

    const command = await seen.next('cdp_command', ({ method }) => method === 'Page.navigate')
    assert.deepEqual([command.data.url_scheme, JSON.stringify(command).includes('in-the-address')], ['http', false])
    const shop = ({ url }: Event['data']) => String(url).includes('/shop')
    const navigation = await seen.next('page_navigation', shop)
    assert.equal(navigation.data.nav_seq, undefined)
    for (const type of ['page_dom_content_loaded', 'page_load', 'page_lcp', 'page_layout_shift'])
      await seen.next(type, shop)
    for (const type of ['page_layout_settled', 'page_navigation_settled', 'network_idle']) await seen.next(type, shop)
    const { data: shift } = await seen.next('page_layout_shift', shop)
    assert.ok(shift.layout_shift_details.value > 0)
    assert.ok((await seen.next('page_lcp', shop)).data.lcp_details.size > 0)

    const { data: log } = await seen.next('console_log')
    assert.deepEqual([log.level, log.text, log.args[0], log.args[2]], ['log', 'hello', 'hello', '5'])
    for (const name of ['session_id', 'target_id', 'target_type', 'nav_seq', 'url'])
      assert.ok(log[name] !== undefined, name)
    assert.equal((await seen.next('console_error', ({ level }) => level === 'error')).data.text, 'bad')
    const thrown = await seen.next('console_error', ({ text }) => text.includes('nobody catches this'))
    assert.equal(thrown.source.event, 'Runtime.exceptionThrown')

    await seen.next(
      'network_request',
      ({ url, resource_type }) => url.includes('/shop') && resource_type === 'Document',
    )
    const ofPath =
      (path: string) =>
      ({ url }: Event['data']) =>
        url.endsWith(path)
    const { data } = await seen.next('network_response', ofPath('/data'))
    assert.deepEqual([data.status, Buffer.byteLength(data.body)], [200, 8 * 1024])
    assert.equal((await seen.next('network_response', ofPath('/picture'))).data.body, undefined)
    await seen.next('network_loading_failed', ({ url }) => url.includes('closed.test'))
    const { data: failed } = await seen.next('proxy_error', ({ url }) => url.includes('unreachable.test'))
    assert.deepEqual([failed.status, typeof failed.request_id], [502, 'string'])
    const { data: picture } = await seen.next('monitor_screenshot')
    assert.equal(Buffer.from(picture.png, 'base64').subarray(1, 4).toString(), 'PNG')
  })

  await context.test('interaction, without secrets', async () => {
    await page.click('#buy')
    await page.click('#name')
    await page.keyboard.press('a')
    await page.click('#pin')
    await page.keyboard.type('zq')
    await page.mouse.wheel(0, 700)

    const { data: click } = await seen.next('interaction_click', ({ selector }) => selector.includes('buy'))
    assert.deepEqual([click.text, click.tag, click.x > 0], ['Buy now', 'button', true])
    assert.equal((await seen.next('interaction_key')).data.key, 'a')
    const { data: scroll } = await seen.next('interaction_scroll_settled')
    assert.deepEqual([scroll.from_y, scroll.to_y], [0, 700])
    assert.deepEqual(
      seen.of('interaction_key').map(({ data }) => data.key),
      ['a'],
      'keys in a field for passwords are not told',
    )
  })

  await context.test('captcha', async () => {
    await page.goto(at('shop.test', '/login'))
    const { data: started } = await seen.next('captcha_solve_started')
    assert.deepEqual(
      [started.captcha_type, started.website_host, started.website_path],
      ['hcaptcha', 'shop.test', '/login'],
    )
    const { data: unsolved } = await seen.next('captcha_solve_result')
    assert.deepEqual([unsolved.status, unsolved.error_code], ['failure', 'solver_not_configured'])

    await page.fill('textarea', 'the answer')

    const { data: result } = await seen.next('captcha_challenge_result')
    assert.deepEqual([result.status, result.challenge_id], ['solved', started.challenge_id])

    await page.goto(at('shop.test', '/slide'))
    await seen.next('captcha_solve_started', ({ captcha_type }) => captcha_type === 'geetest')
    await page.goto(at('shop.test', '/hold'))
    const left = await seen.next('captcha_challenge_result', ({ captcha_type }) => captcha_type === 'geetest')
    assert.equal(left.data.status, 'abandoned')
    await seen.next('captcha_solve_started', ({ captcha_type }) => captcha_type === 'press_and_hold')
    isHeld = true
    await page.reload()
    const held = await seen.next('captcha_challenge_result', ({ captcha_type }) => captcha_type === 'press_and_hold')
    assert.equal(held.data.status, 'solved')
  })

  await context.test('tabs, and changes that take effect at once', async () => {
    const tab = await page.context().newPage()
    assert.equal((await seen.next('page_tab_opened')).data.target_type, 'page')
    const cdp = await page.context().newCDPSession(tab)
    cdp.send('Page.crash').catch(() => {})
    await seen.next('page_crashed')

    await client.browsers.update(id, {
      telemetry: {
        browser: { console: { enabled: false }, control: { cdp: { excluded_methods: ['Page.navigate'] } } },
      },
    } as Kernel.BrowserUpdateParams)
    const before = [seen.of('console_log').length, seen.of('cdp_command').length]
    await page.goto(at('shop.test', '/shop?again'))
    await seen.next('page_load', ({ url }) => url.includes('again'))
    const after = [seen.of('console_log').length, seen.of('cdp_command').length]
    assert.deepEqual(after, before)

    await playwright.close()
    const { data } = await seen.next('cdp_disconnect', ({ telemetry_excluded }) => telemetry_excluded > 0)
    assert.deepEqual([data.reason, data.telemetry_excluded, data.telemetry_dropped], ['client_close', 1, 0])
    assert.ok(data.message_count > 10)
  })

  await context.test('system and monitor', async () => {
    // Without control groups the memory of machines is not limited.
    if (process.geteuid?.() === 0) {
      const args = ['-c', 'head -c 6G /dev/zero | tail']
      await client.browsers.process.exec(id, { command: 'sh', args, timeout_sec: 30 })
      const { data: killed } = await seen.next('system_oom_kill')
      assert.deepEqual([killed.constraint, killed.top_tasks.length > 0], ['memcg', true])
    }

    process.kill(await browserProcess(id), 'SIGKILL')
    const { data: crashed } = await seen.next('service_crashed')
    assert.deepEqual([crashed.service_name, crashed.phase], ['chromium', 'running'])
    assert.equal((await seen.next('monitor_disconnected')).data.reason, 'chrome_restarted')
    assert.ok((await seen.next('monitor_reconnected')).data.reconnect_duration_ms > 0)
    for (let crashes = 1; crashes < 5; crashes++) {
      await until('the next Chromium', async () => seen.of('monitor_reconnected').length === crashes, {
        limitSeconds: 20,
        everyMilliseconds: 50,
      })
      process.kill(await browserProcess(id), 'SIGKILL')
    }
    await seen.next('service_crashed', ({ phase }) => phase === 'gave_up')
    await seen.next('monitor_reconnect_failed')
    await seen.ended
  })

  await context.test('all events are stored in the order of the stream', async () => {
    const stored: Envelope[] = []
    for await (const envelope of client.browsers.telemetry.events(id, { since: '1h', limit: 100 }))
      stored.push(envelope as Envelope)

    assert.deepEqual(stored, seen.events)
    assert.deepEqual(
      stored.map(({ seq }) => seq),
      stored.map((_, index) => index + 1),
      'there is no gap',
    )
  })

  await context.test('every type of event has a test', async () => {
    const document = (await (await fetch(`${berth.url}/openapi.json`)).json()) as ApiDocument
    const types: readonly string[] = document.components.schemas.BrowserTelemetryEvent.properties.type.enum
    const without = types.filter((type) => seen.of(type).length === 0)

    assert.deepEqual(without.toSorted(), Object.keys(causedElsewhere).toSorted())
    for (const [type, path] of Object.entries(causedElsewhere)) {
      assert.ok(readFileSync(join(import.meta.dirname, path), 'utf8').includes(`'${type}'`), `${type} in ${path}`)
    }
  })
})

test('the service of the operator solves the challenges of a stealth session', async () => {
  const config = { host: proxy.host, port: proxy.port }
  const { id: proxyId = '' } = await client.proxies.create({
    type: 'custom',
    protocol: 'http',
    config,
  } as Kernel.ProxyCreateParams)
  const session = await client.browsers.create({
    headless: true,
    stealth: true,
    proxy_id: proxyId,
    telemetry: { enabled: true },
  })
  const id = session.session_id
  assert.equal((session as { captcha_solver?: boolean }).captcha_solver, true)
  const seen = new Reading(await client.browsers.telemetry.stream(id))
  const playwright = await chromium.connectOverCDP(session.cdp_ws_url)
  const page = playwright.contexts()[0]?.pages()[0] as Page

  await page.goto(at('shop.test', '/guarded?secret=in-the-address'))
  const { data: failed } = await seen.next('captcha_solve_result')
  assert.deepEqual([failed.status, failed.error_code], ['failure', 'unsolvable'])
  await page.goto(at('shop.test', '/guarded?again'))
  const { data: solved } = await seen.next('captcha_challenge_result', ({ status }) => status === 'solved')

  const { data: started } = await seen.next('captcha_solve_started', (of) => of.challenge_id === solved.challenge_id)
  const { data: result } = await seen.next('captcha_solve_result', ({ status }) => status === 'success')
  assert.equal(result.task_id, started.task_id)
  assert.deepEqual(asked[1], {
    task_id: started.task_id,
    type: 'hcaptcha',
    site_key: 'the-site-key',
    page_url: at('shop.test', '/guarded'),
    session_id: id,
  })
  await page.waitForFunction("document.title === 'Answered with token-for-the-site-key'")
  assert.equal(await page.inputValue('textarea[name=h-captcha-response]'), 'token-for-the-site-key')
  assert.ok(!JSON.stringify(seen.events).includes('token-for-the-site-key'), 'the token is told to nobody else')
  await playwright.close()
  await client.browsers.deleteByID(id)
})

test('with the default set no page can detect telemetry, and no page events are reported', async () => {
  const session = await client.browsers.create({ headless: true, telemetry: { enabled: true } })
  const seen = new Reading(await client.browsers.telemetry.stream(session.session_id))
  const playwright = await chromium.connectOverCDP(session.cdp_ws_url)
  const cdp = await playwright.newBrowserCDPSession()
  await playwright.contexts()[0]?.pages()[0]?.goto('data:text/html,<script>console.log(1)</script>')
  await playwright.close()
  await seen.next('cdp_disconnect')

  const told = new Set(seen.events.map(({ event }) => event.category))
  assert.deepEqual([...told].toSorted(), ['connection', 'control'])
  assert.ok(cdp)

  await chromium.connectOverCDP(session.cdp_ws_url)
  await client.browsers.deleteByID(session.session_id)
  await seen.ended
  assert.deepEqual(
    seen.of('cdp_disconnect').map(({ data }) => data.reason),
    ['client_close', 'context_cancelled'],
    'the end of the session ends its connections',
  )
})
