import {
  type BrowserViewport,
  defaultGpuViewport,
  defaultViewport,
  derivedRefreshRate,
  type ResolvedViewport,
} from '@berth/contract/browsers/viewport.ts'

/** A larger window than that is asked for in vain: Chromium and X servers end when they are to make one. */
const maxWindowSide = 10_000

/** What the record tells: as it was asked for, whatever its size. */
export function viewportOf(asked: BrowserViewport | undefined, gpu: boolean): ResolvedViewport {
  if (!asked) return gpu ? defaultGpuViewport : defaultViewport
  const { width, height } = asked
  return { width, height, refresh_rate: asked.refresh_rate ?? derivedRefreshRate(width, height) }
}

/** What the browser gets: the same, as large as there can be one. */
export function windowOf({ width, height, refresh_rate }: ResolvedViewport): ResolvedViewport {
  return { width: Math.min(width, maxWindowSide), height: Math.min(height, maxWindowSide), refresh_rate }
}
