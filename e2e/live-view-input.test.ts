import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { CDPSession, Page } from 'playwright-core'
import { Berth } from './testing/berth.ts'
import { launchDesktopBrowser } from './testing/browsers/desktop-browser.ts'
import {
  hasNoted,
  hasValue,
  inViewer,
  type NotedEvent,
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

const noted = async (remote: Page) => (await remote.evaluate('events')) as readonly NotedEvent[]

/** Sends what a keyboard or an input method sends to the browser. */
async function strike(cdp: CDPSession, key: string, code: string, text?: string, keyCode = 0): Promise<void> {
  const described = { key, code, windowsVirtualKeyCode: keyCode }
  await cdp.send('Input.dispatchKeyEvent', {
    type: text ? 'keyDown' : 'rawKeyDown',
    ...described,
    ...(text && { text }),
  })
  await cdp.send('Input.dispatchKeyEvent', { type: 'keyUp', ...described })
}

async function compose(cdp: CDPSession, stages: readonly string[]): Promise<void> {
  for (const text of stages) {
    await strike(cdp, 'Process', 'KeyA', undefined, 229)
    await cdp.send('Input.imeSetComposition', { text, selectionStart: text.length, selectionEnd: text.length })
  }
  await cdp.send('Input.insertText', { text: stages.at(-1) ?? '' })
}

async function typeLikePeople(page: Page, cdp: CDPSession, { remote }: WatchedSession): Promise<void> {
  await page.keyboard.type('a')
  await page.keyboard.down('AltGraph')
  await strike(cdp, '€', 'KeyE', '€', 69)
  await strike(cdp, '@', 'KeyQ', '@', 81)
  await page.keyboard.up('AltGraph')
  await strike(cdp, 'Dead', 'Equal', undefined, 187)
  await strike(cdp, 'é', 'KeyE', 'é', 69)
  await compose(cdp, ['に', 'にほ', '日本'])
  await page.keyboard.type('z')
  await hasValue(remote, 'a€@é日本z')

  // A cancelled composition leaves no text.
  await strike(cdp, 'Process', 'KeyA', undefined, 229)
  await cdp.send('Input.imeSetComposition', { text: 'か', selectionStart: 1, selectionEnd: 1 })
  await cdp.send('Input.imeSetComposition', { text: '', selectionStart: 0, selectionEnd: 0 })
  await page.keyboard.press('Control+a')
  await page.keyboard.press('Control+x')
  await hasValue(remote, '')
  await page.keyboard.press('Control+z')
  await hasValue(remote, 'a€@é日本z')
  await page.keyboard.press('Control+End')
  await page.keyboard.press('Shift+ArrowLeft')
  await page.keyboard.press('Delete')
  await hasValue(remote, 'a€@é日本')
  await page.keyboard.press('Control+Shift+Digit9')
  await hasNoted(remote, "event.type === 'keydown' && event.ctrlKey && event.shiftKey && event.key === '('")
}

async function pointLikePeople(page: Page, cdp: CDPSession, session: WatchedSession): Promise<void> {
  const { remote } = session
  await remote.evaluate('events.length = 0')
  const target = { x: 700, y: 420 }
  const { x, y } = await inViewer(page, session, target)

  await page.mouse.move(x, y)
  await page.mouse.wheel(0, 120)
  await hasNoted(remote, "event.type === 'wheel' && event.deltaY > 0")
  await page.mouse.wheel(0, -120)
  await hasNoted(remote, "event.type === 'wheel' && event.deltaY < 0")
  await page.mouse.wheel(120, 0)
  await hasNoted(remote, "event.type === 'wheel' && event.deltaX > 0")
  await page.mouse.click(x, y, { button: 'middle' })
  await hasNoted(remote, "event.type === 'mousedown' && event.button === 1")
  await page.touchscreen.tap(x, y)
  await hasNoted(remote, "event.type === 'mousedown' && event.button === 0")
  const tap = (await noted(remote)).find(({ type, button }) => type === 'mousedown' && button === 0)
  assert.ok(Math.hypot((tap?.clientX ?? 0) - target.x, (tap?.clientY ?? 0) - target.y) <= 2, JSON.stringify(tap))

  await remote.evaluate('events.length = 0')
  await dragTwoFingers(cdp, { x, y }, -80)
  await hasNoted(remote, "event.type === 'wheel' && event.deltaY > 0")
}

async function dragTwoFingers(cdp: CDPSession, { x, y }: { x: number; y: number }, distance: number): Promise<void> {
  const fingers = (moved: number) => [0, 40].map((aside, id) => ({ x: x + aside, y: y + moved, id }))
  await cdp.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: fingers(0) })
  for (let step = 1; step <= 8; step++) {
    await cdp.send('Input.dispatchTouchEvent', { type: 'touchMove', touchPoints: fingers((distance / 8) * step) })
  }
  await cdp.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] })
}

/** Runs in the viewer: the largest difference between its picture and that of the session, over many positions. */
const compare = `async (content) => {
  const image = new Image()
  image.src = 'data:image/png;base64,' + content
  await image.decode()
  const shown = document.querySelector('canvas')
  if (image.width !== shown.width || image.height !== shown.height) return 256
  const copy = new OffscreenCanvas(image.width, image.height).getContext('2d')
  copy.drawImage(image, 0, 0)
  let worst = 0
  // In the middle of the squares: at their borders JPEG mixes colours.
  for (let row = 0; row < 7; row++) {
    for (let column = 0; column < 8; column++) {
      const [x, y] = [Math.round(((column + 0.5) / 8) * image.width), Math.round(((row + 4.5) / 12) * image.height)]
      const [own, other] = [shown.getContext('2d'), copy].map((picture) => picture.getImageData(x, y, 1, 1).data)
      for (let part = 0; part < 3; part++) worst = Math.max(worst, Math.abs(own[part] - other[part]))
    }
  }
  return worst
}`

async function differenceOfPictures(page: Page, { id }: WatchedSession): Promise<number> {
  const screenshot = await client.browsers.computer.captureScreenshot(id)
  const png = Buffer.from(await screenshot.arrayBuffer()).toString('base64')
  return (await page.evaluate(`(${compare})('${png}')`)) as number
}

/** Squares with high contrast to their neighbours. */
const squares = `(() => {
  const cell = (row, column) => \`rgb(\${(row * 67) % 256}, \${(column * 91) % 256}, \${(row * column * 37) % 256})\`
  document.body.style.cssText = 'margin:0;display:grid;grid:repeat(11,1fr)/repeat(8,1fr);height:100vh;cursor:none'
  document.body.innerHTML = Array.from({ length: 88 }, (_none, at) =>
    \`<div style="background:\${cell(Math.floor(at / 8), at % 8)}"></div>\`).join('')
})()`

async function showsThePictureOfTheSession(page: Page, session: WatchedSession): Promise<void> {
  await session.remote.evaluate(squares)
  let difference = 256
  for (const end = performance.now() + 20_000; difference > 12 && performance.now() < end; ) {
    difference = await differenceOfPictures(page, session)
  }
  assert.ok(difference <= 12, `the worst place differs by ${difference}`)
}

for (const isHeadless of [false, true]) {
  const kind = isHeadless ? 'headless' : 'headful'

  test(`keys, input methods, wheel and touch reach a ${kind} session, and its picture matches the session`, async () => {
    const session = await startWatchedSession(berth, isHeadless)
    const context = await browser.newContext({ viewport: { width: 900, height: 700 }, hasTouch: true })
    const page = await context.newPage()
    const cdp = await context.newCDPSession(page)
    try {
      await page.goto(session.url)
      await waitsForPicture(page)
      const { x, y } = await inViewer(page, session, { x: 100, y: 100 })
      await page.mouse.click(x, y)

      await typeLikePeople(page, cdp, session)
      await pointLikePeople(page, cdp, session)
      await showsThePictureOfTheSession(page, session)
    } finally {
      await context.close()
      await client.browsers.deleteByID(session.id)
      await session.disconnect()
    }
  })
}
