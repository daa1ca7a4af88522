import { EgressFailure, type FailureKind } from '../egress-failure.ts'

/** Until a connection is there, all that it takes included. Chromium itself waits for its proxy for 30 s. */
export const connectLimitMilliseconds = 20_000

/** Runs work that can be given up, at the signal or when the time is over; then it fails with the kind. */
export async function withinLimit<Result>(
  kind: FailureKind,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(new EgressFailure(kind)), connectLimitMilliseconds)
  try {
    return await work(AbortSignal.any([signal, limit.signal]))
  } finally {
    clearTimeout(timer)
  }
}

/** For what cannot be stopped, such as a lookup: an aborted one is left to end by itself. */
export function unlessAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
