import { setTimeout as delay } from 'node:timers/promises'
import type { CdpPipe } from '../cdp-pipe.ts'

const limitMilliseconds = 1_000
const pollMilliseconds = 10
/** Bounds that have not changed for this long are final: a window manager may still adjust them. */
const settledMilliseconds = 50

export interface WindowBounds {
  readonly width: number
  readonly height: number
  readonly windowState: 'normal' | 'minimized' | 'maximized' | 'fullscreen'
}

/** The window that a `Browser.setWindowBounds` command resizes; undefined if it does something else. */
export function resizedWindow(params: unknown): number | undefined {
  const { windowId, bounds } = Object(params) as { windowId?: unknown; bounds?: unknown }
  const { windowState = 'normal', ...size } = Object(bounds) as Record<string, unknown>
  if (typeof windowId !== 'number' || windowState !== 'normal' || Object.keys(size).length === 0) return undefined
  return windowId
}

/**
 * Windows start maximized or, without a display, in full-screen mode. Chromium then ignores a new size and only leaves
 * that mode. This makes the window a normal one first, so that it takes the size. Chromium reports any error to the
 * client.
 */
export async function makeResizable(pipe: CdpPipe, windowId: number): Promise<void> {
  const start = performance.now()
  const ask = async () => {
    const { bounds } = await pipe.send('Browser.getWindowBounds', { windowId }, { limitMilliseconds })
    return bounds
  }
  const { windowState } = await ask()
  if (windowState !== 'maximized' && windowState !== 'fullscreen') return
  const normal = { windowId, bounds: { windowState: 'normal' as const } }
  await pipe.send('Browser.setWindowBounds', normal, { limitMilliseconds })
  let last = ''
  for (let since = start, now = start; now - start < limitMilliseconds; now = performance.now()) {
    const bounds = await ask()
    const current = JSON.stringify(bounds)
    if (current !== last) since = now
    last = current
    if (bounds.windowState === 'normal' && now - since >= settledMilliseconds) return
    await delay(pollMilliseconds)
  }
}
