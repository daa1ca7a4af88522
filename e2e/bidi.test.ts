import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { chromium } from 'playwright-core'
import puppeteer from 'puppeteer-core'
import { Berth } from './testing/berth.ts'
import { BidiClient } from './testing/browsers/bidi.ts'
import { CdpClient } from './testing/cdp.ts'
import { hostMachinesOnly } from './testing/cluster-environment.ts'
import { startPages } from './testing/pages.ts'
import { browserProcess } from './testing/processes.ts'

const mebibyte = 1024 * 1024
/** selenium-webdriver has no type declarations. */
const require = createRequire(import.meta.url)

const pages = await startPages()
pages.serve(
  '/form',
  `<!doctype html><title>Form</title><button onclick="console.log('clicked'); document.title = 'Clicked'">Send</button>`,
)
const berth = await Berth.borrow()
const client = await berth.client()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})

interface Session {
  readonly session_id: string
  readonly cdp_ws_url: string
  readonly webdriver_ws_url: string
}

async function withSession(use: (session: Session) => Promise<void>, headless = true): Promise<void> {
  const session = await client.browsers.create({ headless, timeout_seconds: 120 })
  try {
    await use(session)
  } finally {
    await client.browsers.deleteByID(session.session_id)
  }
}

test(
  'BiDi clients connect, fail and work side by side without effect on a CDP client (case 30)',
  hostMachinesOnly,
  () =>
    withSession(async ({ cdp_ws_url, webdriver_ws_url, session_id }) => {
      const playwright = await chromium.connectOverCDP(cdp_ws_url)
      const page = await (playwright.contexts()[0] ?? (await playwright.newContext())).newPage()
      await page.goto(`${pages.url}/form`)
      await page.evaluate('window.kept = 0')
      const work = workUntilStopped(() => page.evaluate('++window.kept'))
      const before = await targets(cdp_ws_url)

      for (let round = 0; round < 3; round++) {
        const bidi = await BidiClient.open(webdriver_ws_url)
        await within(60_000, bidi.send('session.new', { capabilities: {} }))
        const { context } = await bidi.send('browsingContext.create', { type: 'tab' })
        await bidi.send('browsingContext.navigate', { context, url: pages.url, wait: 'complete' })
        await bidi.send('session.subscribe', { events: ['log.entryAdded'], contexts: [context] })
        await bidi.evaluate(context, `console.log('round ${round}')`)
        const text = await bidi.evaluate(context, `'x'.repeat(${5 * mebibyte})`)

        assert.equal(text.length, 5 * mebibyte)
        assert.ok(bidi.lastLength > 5 * mebibyte)
        assert.deepEqual(
          bidi.events.map(({ params }) => params.text),
          [`round ${round}`],
        )
        await bidi.send('browsingContext.close', { context })
        bidi.reset()
      }

      assert.deepEqual(await targets(cdp_ws_url), before)
      const [first, second] = [await BidiClient.open(webdriver_ws_url), await BidiClient.open(webdriver_ws_url)]
      for (const bidi of [first, second]) await within(60_000, bidi.send('session.new', {}))
      const tabs = await Promise.all(
        [first, second].map(async (bidi, index) => {
          const { context } = await bidi.send('browsingContext.create', { type: 'tab' })
          await bidi.send('browsingContext.navigate', { context, url: `${pages.url}/?${index}`, wait: 'complete' })
          return bidi.evaluate(context, 'location.search')
        }),
      )
      assert.deepEqual(tabs, ['?0', '?1'])
      await second.send('session.end')
      assert.equal(await second.closed, 1000)
      assert.ok((await first.send('browsingContext.getTree')).contexts.length >= 4)

      const { answers, fault } = await work.stop()
      assert.equal(fault, undefined)
      assert.equal(await page.evaluate('window.kept'), answers)

      const pid = await browserProcess(session_id)
      process.kill(pid, 'SIGKILL')
      await within(60_000, first.closed)
      const next = await within(60_000, BidiClient.open(webdriver_ws_url))
      await within(60_000, next.send('session.new', {}))
      assert.notEqual(await browserProcess(session_id), pid)
      next.socket.terminate()
      await playwright.close()
    }),
)

test('browser.close and session.end leave the session and its tabs to the next client', () =>
  withSession(async ({ webdriver_ws_url, cdp_ws_url }) => {
    const first = await BidiClient.open(webdriver_ws_url)
    await first.send('session.new', { capabilities: { alwaysMatch: { browserName: 'chrome', webSocketUrl: true } } })
    const { context } = await first.send('browsingContext.create', { type: 'tab' })
    await first.evaluate(context, 'window.kept = 1')
    const before = await targets(cdp_ws_url)
    await first.send('browser.close')
    assert.equal(await first.closed, 1000)

    const second = await BidiClient.open(webdriver_ws_url)
    await second.send('session.new', {})

    assert.equal(await second.evaluate(context, 'window.kept'), 1)
    assert.deepEqual(await targets(cdp_ws_url), before)
    await second.send('session.end')
  }))

test('selenium-webdriver navigates, finds, clicks and receives the log at the plain address', () =>
  withSession(async ({ webdriver_ws_url }) => {
    const Bidi = require('selenium-webdriver/bidi')
    const getBrowsingContext = require('selenium-webdriver/bidi/browsingContext')
    const getLogInspector = require('selenium-webdriver/bidi/logInspector')
    const bidi = new Bidi(webdriver_ws_url)
    // Its classes take the connection from a driver, which has no other part here.
    const driver = {
      getBidi: async () => bidi,
      getCapabilities: async () => new Map([['webSocketUrl', webdriver_ws_url]]),
    }
    const created = await bidi.send({ method: 'session.new', params: { capabilities: {} } })
    const entry = Promise.withResolvers<{ readonly text: string }>()
    const log = await getLogInspector(driver)
    await log.onConsoleEntry(entry.resolve)

    const tab = await getBrowsingContext(driver, { type: 'tab' })
    const { url } = await tab.navigate(`${pages.url}/form`, 'complete')
    const [button] = await tab.locateNodes(getBrowsingContext.Locator.css('button'))
    const origin = { type: 'element', element: { sharedId: button.sharedId } }
    await bidi.send({
      method: 'input.performActions',
      params: {
        context: tab.id,
        actions: [
          {
            type: 'pointer',
            id: 'mouse',
            actions: [
              { type: 'pointerMove', x: 0, y: 0, origin },
              { type: 'pointerDown', button: 0 },
              { type: 'pointerUp', button: 0 },
            ],
          },
        ],
      },
    })
    const { text } = await within(60_000, entry.promise)
    const picture = Buffer.from(await tab.captureScreenshot(), 'base64')

    assert.equal(created.type, 'success')
    assert.equal(url, `${pages.url}/form`)
    assert.equal(text, 'clicked')
    assert.equal(picture.subarray(1, 4).toString(), 'PNG')
    await bidi.close()
  }))

test('Puppeteer uses BiDi at the plain address, also in a headful session', () =>
  withSession(async ({ webdriver_ws_url, cdp_ws_url }) => {
    const before = await targets(cdp_ws_url)
    const browser = await puppeteer.connect({ browserWSEndpoint: webdriver_ws_url, protocol: 'webDriverBiDi' })
    const page = await browser.newPage()
    const messages: string[] = []
    page.on('console', (message) => messages.push(message.text()))

    await page.goto(`${pages.url}/form`)
    await page.click('button')
    const picture = await page.screenshot()

    assert.equal(await page.title(), 'Clicked')
    assert.deepEqual(messages, ['clicked'])
    assert.equal(Buffer.from(picture).subarray(1, 4).toString(), 'PNG')
    await page.close()
    await browser.disconnect()
    assert.deepEqual(await targets(cdp_ws_url), before)
  }, false))

/** Type and id of every target, to detect what a client left behind. */
async function targets(cdpUrl: string): Promise<readonly string[]> {
  const cdp = await CdpClient.open(cdpUrl)
  const { targetInfos } = (await cdp.send('Target.getTargets')) as { targetInfos: { type: string; targetId: string }[] }
  await cdp.close()
  return targetInfos.map(({ type, targetId }) => `${type} ${targetId}`).sort()
}

/** Repeats the work until stopped. */
function workUntilStopped(once: () => Promise<unknown>): { stop(): Promise<{ answers: number; fault: unknown }> } {
  let isStopped = false
  let answers = 0
  const done = (async () => {
    while (!isStopped) {
      await once()
      answers++
      await delay(20)
    }
  })().then(
    () => undefined,
    (fault: unknown) => fault,
  )
  return {
    async stop() {
      isStopped = true
      const fault = await done
      return { answers, fault }
    },
  }
}

async function within<Value>(milliseconds: number, promise: Promise<Value>): Promise<Value> {
  const late = delay(milliseconds, undefined, { ref: false }).then(() => assert.fail(`not within ${milliseconds} ms`))
  return Promise.race([promise, late as Promise<never>])
}
