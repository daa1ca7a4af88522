import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { retry } from '@berth/runtime/async/retry.ts'
import type { CdpClient } from '../../testing/cdp-client.ts'
import { type StartedAgent, startAgent } from '../../testing/start-agent.ts'

const oddSizes = [
  { width: 1601, height: 903 },
  { width: 777, height: 1333 },
  { width: 2560, height: 1440 },
]

/** Of a window with tabs and an address bar. */
const tabStripHeight = 87

async function resize(agent: StartedAgent, size: { width: number; height: number }): Promise<void> {
  const { status, body } = await agent.resize({ ...size, refresh_rate: 25 })
  assert.equal(status, 204, `${body}\n${agent.log}`)
}

async function sizesOf(cdp: CdpClient, ...pages: string[]): Promise<readonly string[]> {
  return Promise.all(pages.map((page) => cdp.evaluate('innerWidth + "x" + innerHeight', page)))
}

async function openWindow(cdp: CdpClient, browserContextId?: string): Promise<string> {
  const { targetId } = await cdp.send('Target.createTarget', { url: 'about:blank', newWindow: true, browserContextId })
  return cdp.attachTo(targetId)
}

for (const stealth of [false, true]) {
  test(`a headless ${stealth ? 'stealth ' : ''}browser resizes all its pages`, async () => {
    await using agent = await startAgent({ stealth })
    await agent.becomesReady()
    const cdp = await agent.connect()
    const hidden = await cdp.attach()
    const shown = await cdp.newPage()
    const [chromium] = agent.children('chromium')

    for (const { width, height } of [...oddSizes, { width: 1, height: 1 }, { width: 320, height: 9_999 }]) {
      await resize(agent, { width, height })
      const late = await cdp.newPage()

      const size = `${width}x${height}`
      assert.deepEqual(await sizesOf(cdp, hidden, shown, late), [size, size, size])
      assert.equal(await cdp.evaluate('screen.width + "x" + screen.height', shown), size)
    }
    assert.deepEqual(agent.children('chromium'), [chromium], 'the same browser')
  })
}

test('windows that fill the headless screen resize with it, and others keep their size', async () => {
  await using agent = await startAgent()
  await agent.becomesReady()
  const cdp = await agent.connect()
  const first = await cdp.attach()
  const { browserContextId } = await cdp.send('Target.createBrowserContext')
  const full = await openWindow(cdp, browserContextId)
  const opened = cdp.nextEvent('Target.targetCreated', ({ targetInfo }) => targetInfo.openerId !== undefined)
  await cdp.send('Target.setDiscoverTargets', { discover: true })
  await cdp.evaluate('void open("about:blank", "", "popup,width=611,height=333")', first)
  const popup = await cdp.attachTo((await opened).targetInfo.targetId)
  const emulated = await openWindow(cdp, browserContextId)
  const emulation = { width: 640, height: 480, deviceScaleFactor: 1, mobile: false }
  await cdp.send('Emulation.setDeviceMetricsOverride', emulation, emulated)

  await resize(agent, { width: 1501, height: 1001 })

  assert.equal(await cdp.evaluate('outerWidth + "x" + outerHeight', full), '1501x1001')
  assert.deepEqual(await sizesOf(cdp, first, popup, emulated), ['1501x1001', '611x332', '640x480'])
})

for (const kiosk_mode of [false, true]) {
  const frameHeight = kiosk_mode ? 0 : tabStripHeight

  test(`a headful ${kiosk_mode ? 'kiosk ' : ''}window resizes with its display`, async () => {
    await using agent = await startAgent({ headless: false, kiosk_mode })
    await agent.becomesReady()
    const cdp = await agent.connect()
    const hidden = await cdp.attach()
    const shown = await cdp.newPage()
    const [chromium] = agent.children('chromium')

    for (const { width, height } of oddSizes) {
      await resize(agent, { width, height })
      const late = await cdp.newPage()

      const size = `${width}x${height - frameHeight}`
      assert.deepEqual(await sizesOf(cdp, hidden, shown, late), [size, size, size])
      assert.equal(await cdp.evaluate('screen.width + "x" + screen.height', late), `${width}x${height}`)
    }
    assert.deepEqual(agent.children('chromium'), [chromium], 'the same browser')

    await resize(agent, { width: 1, height: 1 })
    assert.equal(await cdp.evaluate('screen.width + "x" + screen.height', shown), '1x1')
    await resize(agent, { width: 1280, height: 720 })
    await resize(agent, { width: 1280, height: 720 })
    assert.deepEqual(await sizesOf(cdp, shown), [`1280x${720 - frameHeight}`])
  })
}

test('a kiosk page fills a display that is smaller than any window of Chromium', async () => {
  await using agent = await startAgent({
    headless: false,
    kiosk_mode: true,
    viewport: { width: 390, height: 844, refresh_rate: 60 },
  })
  await agent.becomesReady()
  const cdp = await agent.connect()
  const page = await cdp.attach()
  const becomes = async (size: string, of = cdp, at = page) => {
    const sized = `new Promise((done) => {
      const look = () => innerWidth + "x" + innerHeight === "${size}" ? done(screen.width + "x" + screen.height) : setTimeout(look)
      look()
    })`
    assert.equal(await of.evaluate(sized, at), size)
  }

  await becomes('390x844')
  for (const size of [
    { width: 320, height: 241 },
    { width: 900, height: 700 },
    { width: 64, height: 64 },
    { width: 391, height: 843 },
  ]) {
    await resize(agent, size)
    await becomes(`${size.width}x${size.height}`)
  }
  process.kill(agent.children('chromium')[0] as number, 'SIGKILL')
  await cdp.closed
  const again = await agent.connect()
  await becomes('391x843', again, await again.attach())
})

for (const headless of [true, false]) {
  const kind = headless ? 'headless' : 'headful'
  const frameHeight = headless ? 0 : tabStripHeight

  // The tests share an agent, whose browser the second one kills.
  describe(`a ${kind} window`, () => {
    let agent: StartedAgent
    before(async () => {
      agent = await startAgent({ headless })
      await agent.becomesReady()
    })
    after(() => agent[Symbol.asyncDispose]())

    test('takes its first size from a client', async () => {
      await takesItsFirstSize(agent)
    })

    test('has its last size again after a crash', async () => {
      await resize(agent, { width: 1003, height: 701 })
      const lost = await agent.connect()

      process.kill(agent.children('chromium')[0] as number, 'SIGKILL')
      await lost.closed

      const cdp = await agent.connect()
      assert.deepEqual(await sizesOf(cdp, await cdp.attach()), [`1003x${701 - frameHeight}`])
      await resize(agent, { width: 1111, height: 777 })
      assert.deepEqual(await sizesOf(cdp, await cdp.attach()), [`1111x${777 - frameHeight}`])
      if (headless) return

      process.kill(agent.children('Xtigervnc')[0] as number, 'SIGKILL')
      await cdp.closed
      const again = await agent.connect()
      const page = await again.attach()
      // A window manager that starts after the browser fits its window to the screen later.
      await retry(async () => assert.deepEqual(await sizesOf(again, page), [`1111x${777 - frameHeight}`]), {
        firstPauseMilliseconds: 20,
        longestPauseMilliseconds: 100,
        patienceMilliseconds: 5_000,
      })
    })

    test('navigates the page in front', async () => {
      const cdp = await agent.connect()
      const pages = [await cdp.attach(), await cdp.newPage(), await cdp.newPage()] as const
      const opened = async (page: string, to: string) => {
        await cdp.send('Page.enable', {}, page)
        const navigated = cdp.nextEvent('Page.frameNavigated', ({ frame }) => frame.url === to)
        const { status, body } = await agent.configure({ start_url: to })
        assert.equal(status, 204, `${body}\n${agent.log}`)
        await navigated
        assert.equal(await cdp.evaluate('location.href', page), to)
      }

      await opened(pages[2], 'data:text/html,last')
      await cdp.send('Page.bringToFront', {}, pages[0])
      await opened(pages[0], 'data:text/html,first')
      await cdp.send('Page.bringToFront', {}, pages[1])
      void cdp.ask('Runtime.evaluate', { expression: 'for (;;) {}' }, pages[1])
      const { status } = await agent.configure({ start_url: 'data:text/html,busy' })
      assert.equal(status, 204)
      assert.equal(await cdp.evaluate('location.href', pages[0]), 'data:text/html,first')
      await cdp.send('Page.bringToFront', {}, pages[2])
      const window = await openWindow(cdp)
      await opened(window, 'data:text/html,window')
    })
  })
}

test('a stealthy headless window takes its first size from a client', async () => {
  await using agent = await startAgent({ stealth: true })
  await agent.becomesReady()

  await takesItsFirstSize(agent)
})

async function takesItsFirstSize(agent: StartedAgent): Promise<void> {
  const client = await agent.connect()
  const session = await client.attach()
  const inner = await client.evaluate('[innerWidth, screen.width, screen.height]', session)
  assert.deepEqual(inner, [1280, 1280, 800])
  const { windowId } = await client.send('Browser.getWindowForTarget', {}, session)

  // Later commands are executed after it.
  const [, { bounds }] = await Promise.all([
    client.send('Browser.setWindowBounds', { windowId, bounds: { width: 1000, height: 700 } }),
    client.send('Browser.getWindowBounds', { windowId }),
  ])

  assert.deepEqual([bounds.width, bounds.height, bounds.windowState], [1000, 700, 'normal'])
  await client.evaluate(
    'new Promise((resolve) => { const look = () => outerWidth === 1000 ? resolve() : setTimeout(look, 10); look() })',
    session,
  )
  assert.deepEqual(await client.evaluate('[outerWidth, outerHeight]', session), [1000, 700])
}
