import { EgressFailure, type FailureKind } from '../egress-failure.ts'

/** The limit for the whole connection attempt. */
const connectLimitMilliseconds = 20_000
/**
 * The limit for the first response of a proxy. Chromium tries twice, and a user should not wait longer than a minute.
 */
export const proxyAnswerLimitMilliseconds = 15_000

/** Runs cancellable work. Fails with the given kind when the time limit expires, and stops on the signal. */
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

/** For work that cannot be cancelled, such as a lookup. It continues in the background after an abort. */
export function unlessAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
