import { setTimeout as delay } from 'node:timers/promises'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import type { CdpPipe } from '../cdp-pipe.ts'
import type { Display } from '../display.ts'
import { withTarget } from '../targets/tabs.ts'
import type { WindowBounds } from './window-bounds.ts'

type Size = Pick<AgentConfig['viewport'], 'width' | 'height'>

/** How long to wait for pages to learn their new size. */
const layoutLimitMilliseconds = 250
const followLimitMilliseconds = 1_000
const pollIntervalMilliseconds = 10
/** A size that has not changed for this long is final. */
const settledMilliseconds = 50
/** After this time a window with another size is assumed to have the smallest size that its tab strip allows. */
const smallestMilliseconds = 200

interface BrowserWindow {
  readonly windowId: number
  readonly bounds: WindowBounds
  /** Its pages, the visible one first. */
  readonly tabs: readonly string[]
}

interface ResizeOptions {
  readonly pipe: CdpPipe
  /** The most recently shown one first. */
  readonly tabs: readonly string[]
  readonly from: Size
  readonly to: Size
}

/**
 * Resizes the screen of a headless browser and each window that filled the old one. Chromium lays out hidden tabs when
 * they are shown. Nobody shows them here, so their size is set directly.
 */
export async function resizeHeadless({ pipe, tabs, from, to }: ResizeOptions): Promise<void> {
  await onSomePage(pipe, tabs, async (session) => {
    const { screenInfos } = await pipe.send('Emulation.getScreenInfos', undefined, session)
    const screenId = screenInfos[0]?.id ?? ''
    await pipe.send('Emulation.updateScreen', { screenId, width: to.width, height: to.height }, session)
  })
  const windows = await windowsOf(pipe, tabs)
  const setBounds = (windowId: number, bounds: Partial<WindowBounds>) =>
    pipe.send('Browser.setWindowBounds', { windowId, bounds })
  await Promise.all(
    windows.map(async ({ windowId, bounds, tabs }) => {
      if (bounds.windowState === 'fullscreen') {
        // A window takes the size of the screen when it enters full-screen mode. Both commands at once, so that its
        // pages see a single change.
        await Promise.all([
          setBounds(windowId, { windowState: 'normal' }),
          setBounds(windowId, { windowState: 'fullscreen' }),
        ])
        await setPageSizes(pipe, tabs, to)
        await layOut(pipe, tabs, to)
      } else if (bounds.width === from.width && bounds.height === from.height) {
        await setBounds(windowId, { width: to.width, height: to.height })
      }
    }),
  )
}

interface HeadfulOptions extends ResizeOptions {
  readonly display: Display | undefined
}

/** Changes the display; the window manager resizes the windows. The sizes of their hidden tabs are set here. */
export async function resizeHeadful({ pipe, tabs, display, to }: HeadfulOptions): Promise<void> {
  if (!display) throw new Error('the display has just ended')
  await display.resize(to)
  const windows = await windowsOf(pipe, tabs)
  const filling = windows.filter(({ bounds }) => ['maximized', 'fullscreen'].includes(bounds.windowState))
  const followed = filling.map(async ({ tabs: [shown = '', ...hidden] }) => {
    const size = await Promise.race([pageSizeAfter(pipe, shown, to), delay(followLimitMilliseconds, undefined)])
    if (size) await setPageSizes(pipe, hidden, size)
  })
  await Promise.allSettled(followed) // A page that has closed meanwhile has no size to wait for.
}

/**
 * The size of a page once its window has followed the display, and the page its window: the page learns its size later
 * than the window. Undefined if a client emulates another size for the page.
 */
async function pageSizeAfter(pipe: CdpPipe, targetId: string, to: Size): Promise<Size | undefined> {
  const question = { expression: 'JSON.stringify({ width: innerWidth, height: innerHeight })' }
  const start = performance.now()
  return withTarget(pipe, targetId, async (session) => {
    let last = ''
    for (let since = start, now = start; now - start < followLimitMilliseconds; now = performance.now()) {
      const { bounds } = await pipe.send('Browser.getWindowForTarget', { targetId })
      const { result } = await pipe.send('Runtime.evaluate', question, session)
      const page = result.value
      const current = `${bounds.width}x${bounds.height} ${page}`
      if (current !== last) since = now
      last = current
      const hasFollowed =
        (bounds.width === to.width && bounds.height === to.height) || now - start > smallestMilliseconds
      if (hasFollowed && now - since >= settledMilliseconds) {
        const size: Size = JSON.parse(page)
        return size.width === bounds.width ? size : undefined
      }
      await delay(pollIntervalMilliseconds)
    }
    return undefined
  })
}

async function windowsOf(pipe: CdpPipe, tabs: readonly string[]): Promise<readonly BrowserWindow[]> {
  const windows = new Map<number, { windowId: number; bounds: WindowBounds; tabs: string[] }>()
  // A page that has closed meanwhile, or has no window, needs no resize.
  const find = (targetId: string) => pipe.send('Browser.getWindowForTarget', { targetId }).catch(() => undefined)
  const all = await Promise.all(tabs.map(async (targetId) => ({ targetId, found: await find(targetId) })))
  for (const { targetId, found } of all) {
    if (!found) continue
    const { windowId } = found
    const bounds = found.bounds as WindowBounds // For a window, all fields are reported.
    const known = windows.get(windowId)
    if (known) known.tabs.push(targetId)
    else windows.set(windowId, { windowId, bounds, tabs: [targetId] })
  }
  return [...windows.values()]
}

/** Without emulation, because a client may have set its own, which must stay. */
async function setPageSizes(pipe: CdpPipe, tabs: readonly string[], { width, height }: Size): Promise<void> {
  const set = (session: string) => pipe.send('Emulation.setVisibleSize', { width, height }, session)
  // One that has closed or crashed meanwhile needs no size.
  await Promise.allSettled(tabs.map((tab) => withTarget(pipe, tab, set)))
}

/** Waits until the pages know their size, except those that are busy or whose client emulates another size. */
async function layOut(pipe: CdpPipe, tabs: readonly string[], { width, height }: Size): Promise<void> {
  const question = { expression: `innerWidth === ${width} && innerHeight === ${height}` }
  const isLaidOut = async (session: string) => {
    const { result } = await pipe.send('Runtime.evaluate', question, session)
    return result.value === true
  }
  const late = AbortSignal.timeout(layoutLimitMilliseconds)
  const waiting = tabs.map((tab) =>
    withTarget(pipe, tab, async (session) => {
      while (!late.aborted && !(await isLaidOut(session))) await delay(pollIntervalMilliseconds)
    }),
  )
  await Promise.race([Promise.allSettled(waiting), delay(layoutLimitMilliseconds)])
}

/** A browser has a screen even when clients have closed all pages. */
async function onSomePage(
  pipe: CdpPipe,
  [first]: readonly string[],
  work: (session: string) => Promise<void>,
): Promise<void> {
  if (first !== undefined) return withTarget(pipe, first, work)
  const { targetId } = await pipe.send('Target.createTarget', { url: 'about:blank', hidden: true, background: true })
  await withTarget(pipe, targetId, work)
  await pipe.send('Target.closeTarget', { targetId })
}
