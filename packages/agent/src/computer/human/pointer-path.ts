import type { Point, Size } from '../screen.ts'

/** Interval of pointer positions: that of a common mouse. */
export const stepMilliseconds = 8

const minMilliseconds = 60
const maxMilliseconds = 900

export interface PathStep extends Point {
  /** Time since the start of the movement. */
  readonly atMilliseconds: number
}

interface HandMovement {
  readonly from: Point
  readonly to: Point
  readonly screen: Size
  /** Absent: depends on the distance, as people need longer for distant targets. */
  readonly durationMilliseconds?: number | undefined
}

/** A movement as a hand makes it: a slight arc, slow at both ends, that ends exactly at the target. */
export function handMovement({ from, to, screen, durationMilliseconds }: HandMovement): readonly PathStep[] {
  const distance = Math.hypot(to.x - from.x, to.y - from.y)
  if (distance === 0 && durationMilliseconds === undefined) return []
  const duration = durationMilliseconds ?? usualMilliseconds(distance)
  const count = Math.max(1, Math.round(duration / stepMilliseconds))
  const [first, second] = [bend(from, to, 0.3), bend(from, to, 0.7)]
  return Array.from({ length: count }, (_, index) => {
    const progress = easeInOut((index + 1) / count)
    const point = index + 1 === count ? to : within(screen, bezier([from, first, second, to], progress))
    return { ...point, atMilliseconds: (duration * (index + 1)) / count }
  })
}

function usualMilliseconds(distance: number): number {
  const base = minMilliseconds + 70 * Math.log2(1 + distance / 30)
  return Math.min(maxMilliseconds, base * between(0.85, 1.15))
}

/** A point beside the straight line, by up to a tenth of its length. */
function bend(from: Point, to: Point, at: number): Point {
  const aside = between(-0.1, 0.1)
  return {
    x: from.x + (to.x - from.x) * at - (to.y - from.y) * aside,
    y: from.y + (to.y - from.y) * at + (to.x - from.x) * aside,
  }
}

function bezier([a, b, c, d]: readonly [Point, Point, Point, Point], t: number): Point {
  const u = 1 - t
  const [wa, wb, wc, wd] = [u ** 3, 3 * u * u * t, 3 * u * t * t, t ** 3]
  return { x: wa * a.x + wb * b.x + wc * c.x + wd * d.x, y: wa * a.y + wb * b.y + wc * c.y + wd * d.y }
}

function easeInOut(t: number): number {
  return t < 0.5 ? 2 * t * t : 1 - (2 - 2 * t) ** 2 / 2
}

function within({ width, height }: Size, { x, y }: Point): Point {
  return { x: clamp(Math.round(x), width - 1), y: clamp(Math.round(y), height - 1) }
}

function clamp(value: number, max: number): number {
  return Math.min(Math.max(value, 0), max)
}

export function between(low: number, high: number): number {
  return low + Math.random() * (high - low)
}
