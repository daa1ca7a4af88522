import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { chromium, type Frame, type Page } from 'playwright-core'
import type { Berth } from './berth.ts'

const colour = '20, 120, 220'
const viewport = { width: 1024, height: 768 }

/** A page that fills its window with a field, and records keyboard, mouse and touch events. */
const watchedPage = `<body style="margin:0;background:rgb(${colour})">
  <textarea style="position:fixed;top:0;left:0;width:50%;height:50%" autofocus></textarea>
  <script>
    window.events = []
    for (const type of ['keydown', 'mousedown', 'mousemove', 'wheel']) addEventListener(type, (event) => {
      const { key, ctrlKey, shiftKey, clientX, clientY, deltaX, deltaY, button } = event
      events.push({ type, key, ctrlKey, shiftKey, clientX, clientY, deltaX, deltaY, button })
    }, true)
  </script>`

/** A recorded event of the page. */
export interface NotedEvent {
  readonly type: string
  readonly key?: string
  readonly ctrlKey: boolean
  readonly shiftKey: boolean
  readonly clientX: number
  readonly clientY: number
  readonly deltaX?: number
  readonly deltaY?: number
  readonly button?: number
}

export interface WatchedSession {
  readonly id: string
  readonly isHeadless: boolean
  readonly url: string
  readonly readOnlyUrl: string
  /** The page in the session. */
  readonly remote: Page
  readonly disconnect: () => Promise<void>
}

/** A session with this page, and the addresses of its live view. */
export async function startWatchedSession(berth: Berth, isHeadless: boolean): Promise<WatchedSession> {
  const client = await berth.client()
  const session = await client.browsers.create({ headless: isHeadless, timeout_seconds: 300, viewport })
  const connected = await chromium.connectOverCDP(session.cdp_ws_url)
  const remote = connected.contexts()[0]?.pages()[0] as Page
  await remote.setContent(watchedPage)
  // berth's own extension, so the official client has no method for it.
  const liveView = (await client.get(`/browsers/${session.session_id}/live_view`)) as Record<string, string>
  const { url = '', read_only_url: readOnlyUrl = '', source } = liveView
  assert.equal(source, isHeadless ? 'page' : 'display')
  assert.equal(session.browser_live_view_url, isHeadless ? undefined : url)
  return { id: session.session_id, isHeadless, url, readOnlyUrl, remote, disconnect: () => connected.close() }
}

/** Polls from outside, because the viewer's policy forbids Playwright's own polling. */
export async function becomesTrue(viewer: { evaluate(code: string): Promise<unknown> }, condition: string) {
  for (const end = performance.now() + 30_000; performance.now() < end; await delay(50)) {
    if ((await viewer.evaluate(condition)) === true) return
  }
  assert.fail(`this did not become true: ${condition}`)
}

export const isConnected =
  "document.body.dataset.state === 'connected' && (document.querySelector('canvas')?.width ?? 0) > 1"

/** Whether the middle of the lower half has the colour of the page, with a tolerance for JPEG. */
export const showsBackground = `(() => {
  const canvas = document.querySelector('canvas')
  const pixel = canvas.getContext('2d').getImageData(canvas.width / 2, canvas.height * 0.8, 1, 1).data
  return [${colour}].every((part, index) => Math.abs(part - pixel[index]) < 8)
})()`

export async function waitsForPicture(viewer: Page | Frame): Promise<void> {
  await becomesTrue(viewer, isConnected)
  await becomesTrue(viewer, showsBackground)
}

export async function hasValue(remote: Page, expected: string): Promise<void> {
  const wanted = JSON.stringify(expected)
  await remote
    .waitForFunction(`document.querySelector('textarea').value === ${wanted}`, undefined, { timeout: 20_000 })
    .catch(async () => assert.equal(await remote.inputValue('textarea'), expected))
}

/** Waits until the page in the session has recorded such an event. */
export async function hasNoted(remote: Page, what: string): Promise<void> {
  await remote.waitForFunction(`events.some((event) => ${what})`, undefined, { timeout: 20_000 }).catch(async () => {
    const noted = await remote.evaluate('events.filter(({ type }) => type !== "mousemove")')
    assert.fail(`the page did not note ${what}, but ${JSON.stringify(noted)}`)
  })
}

/** The scale and position of the picture in the viewer. */
const placeOfPicture = `(() => {
  const canvas = document.querySelector('canvas')
  const { x, y, width } = canvas.getBoundingClientRect()
  return { x, y, scale: width / canvas.width }
})()`

interface Point {
  readonly x: number
  readonly y: number
}

/** The position of a page's point in the viewer. A display also shows the browser's own controls above the page. */
export async function inViewer(
  viewer: { evaluate(code: string): Promise<unknown> },
  { remote, isHeadless }: WatchedSession,
  point: Point,
): Promise<Point> {
  const place = (await viewer.evaluate(placeOfPicture)) as Point & { readonly scale: number }
  const above = isHeadless ? 0 : ((await remote.evaluate('outerHeight - innerHeight')) as number)
  return { x: place.x + point.x * place.scale, y: place.y + (point.y + above) * place.scale }
}
