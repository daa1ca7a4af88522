import { setTimeout as delay } from 'node:timers/promises'

interface UntilOptions {
  readonly limitSeconds: number
  /** The pause between checks: the watched state sends no notifications. By default it grows with the time waited. */
  readonly everyMilliseconds?: number
}

const pauseMilliseconds = { shortest: 20, longest: 250 }

/** A tenth of the time waited, because what is looked at takes the processor from what is waited for. */
function pauseAfter(waitedMilliseconds: number): number {
  return Math.min(pauseMilliseconds.longest, Math.max(pauseMilliseconds.shortest, waitedMilliseconds / 10))
}

/** Calls `check` repeatedly until it returns a value, and returns that. */
export async function until<Found>(
  what: string,
  check: () => Promise<Found | undefined | false> | Found | undefined | false,
  { limitSeconds, everyMilliseconds }: UntilOptions,
): Promise<Found> {
  const startedAt = performance.now()
  for (;;) {
    const found = await check()
    if (found !== undefined && found !== false) return found
    const waited = performance.now() - startedAt
    if (waited > limitSeconds * 1000) throw new Error(`not within ${limitSeconds} s: ${what}`)
    await delay(everyMilliseconds ?? pauseAfter(waited))
  }
}
