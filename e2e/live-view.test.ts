import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Frame, Page } from 'playwright-core'
import { WebSocket } from 'ws'
import { Berth } from './testing/berth.ts'
import { launchDesktopBrowser } from './testing/browsers/desktop-browser.ts'
import {
  becomesTrue,
  hasValue,
  isConnected,
  startWatchedSession,
  type WatchedSession,
  waitsForPicture,
} from './testing/live-view.ts'

const berth = await Berth.borrow()
const client = await berth.client()
const browser = await launchDesktopBrowser()
after(async () => {
  await browser.close()
  await berth[Symbol.asyncDispose]()
})

/** The messages that noVNC would send if it were not read-only. */
const inputBesideThePage = `new Promise((resolve) => {
  const socket = new WebSocket(location.href.replace('http', 'ws'))
  socket.binaryType = 'arraybuffer'
  const answers = ['RFB 003.008\\n', [1], [1]]
  socket.onmessage = () => {
    const answer = answers.shift()
    if (answer) return socket.send(typeof answer === 'string' ? new TextEncoder().encode(answer) : Uint8Array.from(answer))
    socket.onmessage = resolve
    const pointer = [5, 1, 0, 100, 0, 250]
    const key = [4, 1, 0, 0, 0, 0, 0, 0x61]
    socket.send(JSON.stringify({ type: 'text', text: 'typed' }))
    socket.send(Uint8Array.from([2, 0, 0, 1, 0, 0, 0, 7, ...pointer, ...key, 3, 0, 0, 0, 0, 0, 0, 8, 0, 8]))
  }
})`

/** Clicks into the field in the upper left of the page; a display also shows the browser's own controls above it. */
async function clickField(page: Page): Promise<void> {
  const box = await page.locator('#viewer, body').last().boundingBox()
  const { x, y, width, height } = box as { x: number; y: number; width: number; height: number }
  await page.mouse.click(x + width * 0.25, y + height * 0.3)
}

test('a framed viewer survives reloads and a network outage, and ends with its session', async () => {
  const { id, url, remote, disconnect } = await startWatchedSession(berth, false)
  const outer = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html')
    response.end(`<iframe id="viewer" style="width:800px;height:600px;border:0" src="${url}"></iframe>`)
  }).listen(0, '127.0.0.1')
  const context = await browser.newContext()
  const page = await context.newPage()
  const pageOfApp = await context.newPage()
  const viewerFrame = async () => {
    const element = await page.locator('#viewer').elementHandle()
    const frame = (await element?.contentFrame()) as Frame
    await becomesTrue(frame, isConnected)
    return frame
  }
  try {
    // An app may show pages that come from no server.
    await pageOfApp.setContent(`<iframe style="width:800px;height:600px" src="${url}"></iframe>`)
    const frameOfApp = pageOfApp.frames()[1]
    assert.ok(frameOfApp)
    await becomesTrue(frameOfApp, isConnected)
    await pageOfApp.close()
    await page.goto(`http://localhost:${(outer.address() as AddressInfo).port}/`)

    let expected = ''
    for (let load = 0; load < 4; load++) {
      if (load > 0) await page.reload()
      const frame = await viewerFrame()
      await waitsForPicture(frame)
      await clickField(page)
      // A frame of another site gets the focus asynchronously.
      await becomesTrue(frame, "document.hasFocus() && document.activeElement.id === 'keyboard'")
      // Chromium first determines the target of a click, and keys sent meanwhile overtake it.
      await remote.waitForFunction(`events.filter(({ type }) => type === 'mousedown').length === ${load + 1}`)
      await page.keyboard.press('Control+End')
      await page.keyboard.type('hello')
      expected += 'hello'
      await hasValue(remote, expected)
    }
    await context.setOffline(true)
    await delay(1_000)
    await context.setOffline(false)
    await viewerFrame()
    await page.keyboard.type('again')
    await hasValue(remote, `${expected}again`)

    await client.browsers.deleteByID(id)
    const frame = page.frames().find((each) => each.url().startsWith(berth.url)) as Frame
    await frame.locator('body[data-state=ended]').waitFor({ state: 'attached', timeout: 20_000 })
    assert.equal((await fetch(url)).status, 404)
  } finally {
    outer.closeAllConnections()
    outer.close()
    await context.close()
    await disconnect()
  }
})

for (const headless of [false, true]) {
  const kind = headless ? 'headless' : 'headful'

  describe(`a live view of a ${kind} session`, () => {
    let session: WatchedSession
    before(async () => {
      session = await startWatchedSession(berth, headless)
    })
    after(async () => {
      await client.browsers.deleteByID(session.id)
      await session.disconnect()
    })

    // Before text is typed: the field is empty.
    test('a read-only viewer cannot send input, even without the page', async () => {
      const { url, readOnlyUrl, remote } = session
      const events = () => remote.evaluate('events.length')
      // The read-only address cannot be converted to the full one.
      const addresses = [`${url}&readOnly=true`, readOnlyUrl.replace('readOnly=true', 'readOnly=false')]
      for (const address of addresses) {
        const page = await browser.newPage({ viewport: { width: 900, height: 700 } })
        await page.goto(address)
        await waitsForPicture(page)
        const before = await events()

        await clickField(page)
        await page.keyboard.type('nothing')
        await page.mouse.wheel(0, 200)
        await page.evaluate(inputBesideThePage)

        assert.equal(await remote.inputValue('textarea'), '')
        assert.equal(await events(), before)
        await page.close()
      }
      assert.equal((await fetch(readOnlyUrl.replace('/live?', '/json/version?'))).status, 401)
    })

    test('a viewer types text of any kind in order, and shares the clipboard', async () => {
      const { url, remote } = session
      const context = await browser.newContext({ viewport: { width: 900, height: 700 } })
      await context.grantPermissions(['clipboard-read', 'clipboard-write'])
      const page = await context.newPage()
      try {
        await page.goto(url)
        await waitsForPicture(page)

        await clickField(page)
        await page.keyboard.type('one Ä ')
        await page.keyboard.insertText('日本語😀') // Like an input method.
        await page.keyboard.press('Enter')
        await page.keyboard.type('x')
        await page.evaluate("navigator.clipboard.writeText(' from outside €')")
        await page.keyboard.press('Control+v')
        await hasValue(remote, 'one Ä 日本語😀\nx from outside €')

        await page.keyboard.press('Control+a')
        await page.keyboard.press('Control+c')
        await becomesTrue(page, "navigator.clipboard.readText().then((text) => text.startsWith('one Ä 日本語😀'))")
      } finally {
        await context.close()
      }
    })
  })
}

describe('with a display', () => {
  let session: WatchedSession
  before(async () => {
    session = await startWatchedSession(berth, false)
  })
  after(async () => {
    await client.browsers.deleteByID(session.id)
    await session.disconnect()
  })

  test('the maximum number of viewers can watch at once, and one more is refused', async () => {
    const { url } = session
    const open = () =>
      new Promise<number>((resolve) => {
        const socket = new WebSocket(url.replace('http', 'ws'))
        sockets.push(socket)
        socket.once('open', () => resolve(101))
        socket.once('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0))
        socket.on('error', () => {})
      })
    const sockets: WebSocket[] = []
    try {
      const opened: number[] = []
      for (let count = 0; count < 17; count++) opened.push(await open())

      assert.deepEqual(opened, [...Array(16).fill(101), 429])
    } finally {
      for (const socket of sockets) socket.terminate()
    }
  })

  test('the size changes during a live view only with force, and the viewer follows', async () => {
    const { url, id } = session
    const page = await browser.newPage()
    const resize = (force: boolean) =>
      berth.request(`/browsers/${id}`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ viewport: { width: 800, height: 600, force } }),
      })
    await page.goto(url)
    await becomesTrue(page, isConnected)

    const refused = await resize(false)
    const forced = await resize(true)

    assert.equal(refused.status, 409)
    assert.equal(refused.headers.get('x-should-retry'), 'false')
    assert.equal(((await refused.json()) as { code: string }).code, 'viewport_in_use')
    assert.equal(forced.status, 200)
    await becomesTrue(page, "document.querySelector('canvas').width === 800")
    await page.close()
    assert.equal((await fetch(`${url}&readOnly=perhaps`)).status, 400)
    assert.equal((await fetch(url.replace(/jwt=.*/, ''))).status, 401)
  })
})

test('telemetry reports viewers of a headful session', async () => {
  const { session_id: id, browser_live_view_url: url = '' } = await client.browsers.create({
    headless: false,
    telemetry: { enabled: true },
  })
  const stream = await client.browsers.telemetry.stream(id)
  const viewer = new WebSocket(url.replace('http', 'ws'))

  viewer.once('open', () => viewer.close())

  const told: { readonly type: string; readonly data?: unknown }[] = []
  for await (const { event } of stream) {
    if (event.type.startsWith('live_view')) told.push(event)
    if (told.length === 2) break
  }
  const [begin, end] = told as { readonly type: string; readonly data: Record<string, unknown> }[]
  assert.deepEqual([begin?.type, end?.type], ['live_view_connect', 'live_view_disconnect'])
  assert.equal(begin?.data.session_id, end?.data.session_id)
  assert.ok((end?.data.duration_ms as number) >= 0)
  await client.browsers.deleteByID(id)
})
