const milliseconds: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
}
const durationPattern = /^(?:\d{1,9}(?:\.\d{1,9})?(?:ns|us|µs|ms|s|m|h))+$/
const timePattern = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?)?$/

/** A time, or a duration before now. */
export type Since = { readonly time: Date } | { readonly agoMilliseconds: number }

/** Reads a time, or a duration such as `1h30m`. A time without a zone is in UTC. Undefined for anything else. */
export function parseSince(text: string): Since | undefined {
  if (durationPattern.test(text)) {
    const parts = [...text.matchAll(/([\d.]+)(\D+)/g)]
    const length = parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (milliseconds[unit] ?? 0), 0)
    return { agoMilliseconds: length }
  }
  if (!timePattern.test(text)) return undefined
  const hasZone = /(Z|[+-]\d\d:\d\d)$/.test(text)
  const time = new Date(hasZone || !text.includes('T') ? text : `${text}Z`)
  return Number.isNaN(time.getTime()) ? undefined : { time }
}

export function timeOf(since: Since, now: Date): Date {
  if ('time' in since) return since.time
  return new Date(Math.max(0, now.getTime() - since.agoMilliseconds))
}
