import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'

/** Fails when the promise has not settled in time. */
export async function within<Value>(milliseconds: number, promise: Promise<Value>): Promise<Value> {
  const late = delay(milliseconds, undefined, { ref: false }).then(() => assert.fail(`not within ${milliseconds} ms`))
  return Promise.race([promise, late as Promise<never>])
}
