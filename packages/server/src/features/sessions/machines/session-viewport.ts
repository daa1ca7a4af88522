import {
  type BrowserViewport,
  defaultGpuViewport,
  defaultViewport,
  derivedRefreshRate,
  type ResolvedViewport,
} from '@berth/contract/browsers/viewport.ts'

/** Chromium and X servers exit when they are asked for a larger window. */
const maxWindowSide = 10_000

/** The viewport in the record: as requested, whatever its size. */
export function viewportOf(asked: BrowserViewport | undefined, gpu: boolean): ResolvedViewport {
  if (!asked) return gpu ? defaultGpuViewport : defaultViewport
  const { width, height } = asked
  return { width, height, refresh_rate: asked.refresh_rate ?? derivedRefreshRate(width, height) }
}

/** The viewport of the browser: the same, up to the largest possible window. */
export function windowOf({ width, height, refresh_rate }: ResolvedViewport): ResolvedViewport {
  return { width: Math.min(width, maxWindowSide), height: Math.min(height, maxWindowSide), refresh_rate }
}
