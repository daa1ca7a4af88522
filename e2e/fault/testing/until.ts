import { setTimeout as delay } from 'node:timers/promises'

interface UntilOptions {
  readonly limitSeconds: number
  /** The pause between checks. The watched state sends no notifications. */
  readonly everyMilliseconds?: number
}

/** Calls `check` repeatedly until it returns a value, and returns that. */
export async function until<Found>(
  what: string,
  check: () => Promise<Found | undefined | false> | Found | undefined | false,
  { limitSeconds, everyMilliseconds = 20 }: UntilOptions,
): Promise<Found> {
  const deadline = performance.now() + limitSeconds * 1000
  for (;;) {
    const found = await check()
    if (found !== undefined && found !== false) return found
    if (performance.now() > deadline) throw new Error(`not within ${limitSeconds} s: ${what}`)
    await delay(everyMilliseconds)
  }
}
