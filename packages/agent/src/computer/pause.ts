import { setTimeout as delay } from 'node:timers/promises'

/** The longest delay of a timer; a longer one would fire immediately. */
const maxMilliseconds = 2 ** 31 - 1

/** Rejects with the signal's reason when it aborts. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  if (milliseconds <= 0) return
  await delay(Math.min(milliseconds, maxMilliseconds), undefined, { signal }).catch(() => signal.throwIfAborted())
}
