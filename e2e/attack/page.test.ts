import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { type Browser, chromium, type Page } from 'playwright-core'
import { until } from '../fault/testing/until.ts'
import { AttackTarget, canaryPort, secrets, stunPort } from './testing/attack-target.ts'
import { hostAddresses, networksProblem } from './testing/networks.ts'
import { fetchStatus, gatherCandidates, loadWithEveryApi, openWebSockets } from './testing/page-attacks.ts'

const { lan, home, public: ownPublic, uniqueLocal } = hostAddresses
const publicPage = 'http://45.5.5.5/'

/** Other spellings of loopback and metadata addresses. Only browsers understand some of them. */
const unusualSpellings = words(`
  0177.0.0.1 0x7f.0.0.1 0x7f000001 2130706433 017700000001 127.1 127.0.0.1. 127.255.255.254 0 0.0.0.0
  %31%32%37.0.0.1 １２７.0.0.1 127。0。0。1 [::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::127.0.0.1]
  0xa9fea9fe 2852039166 169.254.43518 0251.0376.0251.0376 [::ffff:169.254.169.254] [fd00:ec2::254]
`)
const addresses = words(`
  127.0.0.1 ${lan} ${home} ${ownPublic} [${uniqueLocal}] [::ffff:${lan}] 10.9.9.9 172.16.0.1 192.168.0.1 100.127.0.1 100.127.0.2
  169.254.169.254 169.254.170.2 168.63.129.16 [fe80::1]
`)
const names = words(`
  localhost LOCALHOST. a.localhost loopback.test loopback6.test lan.test neighbour.test metadata.test mapped.test own.test own.test.
`)

function words(text: string): string[] {
  return text.trim().split(/\s+/)
}

suite('a page', { skip: networksProblem(), timeout: 300_000 }, () => {
  let berth: AttackTarget
  let browser: Browser
  let page: Page

  before(async () => {
    berth = await AttackTarget.start()
    const { cdp_ws_url } = await berth.client.browsers.create({ headless: true })
    browser = await chromium.connectOverCDP(cdp_ws_url)
    page = (browser.contexts()[0] as NonNullable<ReturnType<Browser['contexts']>[0]>).pages()[0] as Page
  })
  after(async () => {
    await browser?.close()
    await berth?.[Symbol.asyncDispose]()
  })

  /** Returns the status of a visit, or `failed`. */
  async function visit(url: string): Promise<number | 'failed'> {
    try {
      return (await page.goto(url, { timeout: 15_000 }))?.status() ?? 'failed'
    } catch {
      return 'failed'
    }
  }

  /**
   * Opens a page that can be loaded. The error page of an earlier visit may arrive late and replace it, so this
   * retries.
   */
  async function open(url: string): Promise<void> {
    await until(`${url} in the page`, () => shows(url), { limitSeconds: 60 })
  }

  async function shows(url: string): Promise<boolean> {
    await visit(url)
    return page.url().startsWith(url) && (await pageText()) !== ''
  }

  /** Opens a page by a name that is public when it is looked up first, and returns the name. Each attempt needs another. */
  async function openRebinding(later: string): Promise<string> {
    let attempt = 0
    const nameNow = () => `try-${attempt}.public-then-${later}.rebind.test`
    const isThere = () => {
      attempt += 1
      return shows(`http://${nameNow()}/`)
    }
    await until(`a page by a name that becomes ${later}`, isThere, { limitSeconds: 60 })
    return nameNow()
  }

  /** Returns everything that reached canaries, except for expected connections. */
  async function reached(): Promise<readonly string[]> {
    // This is sent last. When it is reported, everything before it has been reported too.
    await open('http://45.255.255.255/')
    await berth.world.until('tcp 45.255.255.255 80')
    const isMeant = (line: string) => /^tcp 45\.(5\.5\.5|255\.255\.255) 80$|^dns /.test(line)
    const found = [...berth.host.reached, ...berth.world.reached.filter((line) => !isMeant(line))]
    berth.forget()
    return found
  }

  test('reaches public addresses, which proves that the network works', async () => {
    await open(publicPage)
    assert.equal(await page.title(), 'canary')

    assert.equal(await visit('http://public.test/'), 200)
    assert.equal(await visit(`http://45.7.7.7:${canaryPort}/`), 200)
    // Twice: for the page and for its icon.
    assert.deepEqual(new Set(await reached()), new Set([`tcp 45.7.7.7 ${canaryPort}`]))
  })

  test('reaches neither the host, nor its networks, nor metadata services, in any spelling', async () => {
    for (const host of [...addresses, ...unusualSpellings, ...names]) {
      const status = await visit(`http://${host}:${canaryPort}/`)

      assert.ok(status === 403 || status === 'failed', `${host}: ${status}`)
      assert.doesNotMatch(await pageText(), /canary/, host)
    }
    assert.deepEqual(await reached(), [])
  })

  test('reaches neither the API nor the DevTools of its own browser', async () => {
    for (const host of ['127.0.0.1', 'localhost', lan, ownPublic, '[::1]', 'own.test']) {
      assert.ok([403, 'failed'].includes(await visit(`http://${host}:${berth.port}/health`)), host)
      assert.ok([403, 'failed'].includes(await visit(`http://${host}:9222/json/version`)), host)
      assert.doesNotMatch(await pageText(), /database|webSocketDebuggerUrl/, host)
    }
  })

  test('reaches nothing more by redirects, frames, images, scripts, workers and forms', async () => {
    const targets = [
      `http://127.0.0.1:${canaryPort}/x`,
      `http://lan.test:${canaryPort}/x`,
      'http://169.254.169.254/latest/meta-data',
    ]
    await open(publicPage)

    for (const target of targets) {
      const redirect = `${publicPage}redirect?${encodeURIComponent(target)}`
      const status = await visit(redirect)
      assert.ok(status === 403 || status === 'failed', `${redirect}: ${status}`)
      await open(publicPage)
      assert.deepEqual(await page.evaluate(loadWithEveryApi([target, redirect])), [])
    }

    assert.deepEqual(await reached(), [])
  })

  test('opens no websocket to private addresses', async () => {
    await open(publicPage)
    const hosts = [
      '127.0.0.1',
      'localhost',
      '[::1]',
      lan,
      'lan.test',
      '169.254.169.254',
      '2130706433',
      'neighbour.test',
    ]

    const closed = hosts.map((host) => `ws://${host}:${canaryPort}/`)
    closed.push(`ws://127.0.0.1:${berth.port}/s/x/cdp`, 'ws://127.0.0.1:9222/devtools/browser')

    assert.deepEqual(await page.evaluate(openWebSockets(closed)), [])
    assert.deepEqual(await reached(), [])
  })

  test('reaches nothing more by a name whose address changes between two lookups', async () => {
    for (const later of ['127.0.0.1', lan, '169.254.169.254']) {
      const name = await openRebinding(later)

      const again = await page.evaluate(fetchStatus(`http://${name}/?again`))
      const elsewhere = await page.evaluate(fetchStatus(`http://${name}:${canaryPort}/`))

      // The first address may be used again: the guard checks the address of each connection.
      for (const status of [again, elsewhere])
        assert.ok([200, 403, 'failed'].includes(status as number), `${name}: ${status}`)
    }
    const ofHost = (await reached()).filter((line) => line !== `tcp 45.5.5.5 ${canaryPort}`)
    assert.deepEqual(ofHost, [])
  })

  test('WebRTC does not bypass the proxy', async () => {
    await open(publicPage)

    const { candidates, sdp } = await page.evaluate<{ candidates: string[]; sdp: string }>(
      gatherCandidates(`45.3.3.3:${stunPort}`),
    )

    for (const candidate of candidates) assert.match(candidate, / [0-9a-f-]+\.local \d+ typ host/)
    assert.doesNotMatch(sdp, /(?!0\.0\.0\.0|127\.0\.0\.1)\b\d+\.\d+\.\d+\.\d+/)
    assert.deepEqual(await reached(), [])
  })

  test('reads no file of the host, and a web page reads no file at all', async () => {
    const files = [
      `${berth.dataFolder}/master-key`,
      `${berth.dataFolder}/`,
      '/etc/shadow',
      '/root/',
      '/proc/1/environ',
      '/var/lib/',
    ]
    for (const url of files.flatMap((file) => [`file://${file}`, `view-source:file://${file}`])) {
      await visit(url)
      assert.match(
        await pageText(),
        /^$|ERR_(FILE_NOT_FOUND|ACCESS_DENIED|FAILED)|could not be found|not be accessed/i,
        url,
      )
    }
    await open('file:///etc/passwd')
    assert.match(
      await pageText(),
      // Chromium may show it as source, with a title of its own.
      /^(Line wrap\s+)?root:x:0:0:root:\/root:\/usr\/sbin\/nologin\s+kernel:/,
      'there is but the machine’s own',
    )

    await open(publicPage)
    const fetched = await page.evaluate(fetchStatus('file:///etc/passwd'))
    await page.evaluate(`void open('file:///etc/passwd')`)
    await page.evaluate(`void location.assign('file:///etc/passwd')`)

    assert.equal(fetched, 'failed')
    assert.equal(page.url(), publicPage)
  })

  test('finds no secret in the internal pages of the browser, and a web page cannot open them', async () => {
    const told = [...Object.values(secrets), 'DATABASE_URL', berth.dataFolder]
    await open('chrome://version')
    for (const name of ['version', 'policy', 'system', 'net-internals', 'inspect', 'settings', 'process-internals']) {
      await visit(`chrome://${name}`)
      const text = await pageText()
      for (const secret of told) assert.ok(!text.includes(secret), `chrome://${name} tells ${secret}`)
    }

    await open(publicPage)
    await page.evaluate(`void location.assign('chrome://version')`)
    await page.evaluate(`void location.assign('view-source:file:///etc/passwd')`)

    assert.equal(page.url(), publicPage)
  })

  async function pageText(): Promise<string> {
    return page.evaluate<string>(`document.body?.innerText ?? ''`).catch(() => '')
  }
})
