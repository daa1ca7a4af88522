import { EgressFailure, type FailureKind } from '../egress-failure.ts'

/** Until a connection is there, all that it takes included. */
const connectLimitMilliseconds = 20_000
/** Until a proxy has said something. Chromium asks twice, and a person waits for a page no longer than a minute. */
export const proxyAnswerLimitMilliseconds = 15_000

/** Runs work that can be given up, at the signal or when the time is over; then it fails with the kind. */
export async function withinLimit<Result>(
  kind: FailureKind,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const limit = new AbortController()
  const limitMilliseconds = kind === 'proxy-timeout' ? proxyAnswerLimitMilliseconds : connectLimitMilliseconds
  const timer = setTimeout(() => limit.abort(new EgressFailure(kind)), limitMilliseconds)
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
