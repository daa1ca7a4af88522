/** Each class of the histogram ends a quarter later than the one before: from 5 ms to about two minutes. */
const growth = 1.25
const firstMilliseconds = 5
const classCount = 46

/** A histogram of durations. Its size does not depend on their number. */
export type CreateTimes = readonly number[]

export const noTimes: CreateTimes = Array<number>(classCount).fill(0)

export function withTime(times: CreateTimes, milliseconds: number): CreateTimes {
  const index = Math.ceil(Math.log(milliseconds / firstMilliseconds) / Math.log(growth))
  const place = Math.min(classCount - 1, Math.max(0, index))
  return times.map((count, each) => (each === place ? count + 1 : count))
}

/** The duration below which this share of them lies. Interpolates linearly within a class. */
export function percentileOf(times: CreateTimes, share: number): number | null {
  const total = times.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let rest = share * total
  for (const [index, count] of times.entries()) {
    if (rest <= count) {
      const end = firstMilliseconds * growth ** index
      const begin = index === 0 ? 0 : end / growth
      return Math.round(begin + (end - begin) * (rest / count))
    }
    rest -= count
  }
  return Math.round(firstMilliseconds * growth ** (classCount - 1))
}
