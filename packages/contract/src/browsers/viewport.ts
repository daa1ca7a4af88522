import { z } from 'zod'

const Pixels = z.int().min(1)

/** The window size. The refresh rate is in Hz and depends on the size when it is omitted. */
export const BrowserViewport = z
  .object({ width: Pixels, height: Pixels, refresh_rate: z.int().min(1).optional() })
  .meta({ id: 'BrowserViewport' })
export type BrowserViewport = z.infer<typeof BrowserViewport>
/** A viewport with its refresh rate decided. */
export type ResolvedViewport = BrowserViewport & { readonly refresh_rate: number }

export const defaultViewport = { width: 1920, height: 1080, refresh_rate: 25 } as const
export const defaultGpuViewport = { width: 1920, height: 1080, refresh_rate: 60 } as const

/** Presets that are known to work. Other sizes use the rate of the preset with the next larger area. */
const presetRates: readonly (readonly [width: number, height: number, refreshRate: number])[] = [
  [390, 844, 60],
  [1024, 768, 60],
  [768, 1024, 60],
  [1200, 800, 60],
  [1280, 800, 60],
  [1440, 900, 25],
  [1920, 1080, 25],
  [1920, 1200, 25],
  [2560, 1440, 10],
]

/** The default refresh rate of a size in Hz. Larger screens get lower rates. */
export function derivedRefreshRate(width: number, height: number): number {
  const preset = presetRates.find((candidate) => width * height <= candidate[0] * candidate[1])
  return preset?.[2] ?? 10
}
