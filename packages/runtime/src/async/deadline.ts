/**
 * Rejects with `late()` when the promise has not settled in time. The work itself continues: pass it an AbortSignal if
 * it should stop.
 */
export async function within<Value>(
  milliseconds: number,
  promise: Promise<Value>,
  late: () => Error = () => new DeadlineError(milliseconds),
): Promise<Value> {
  promise.catch(() => {}) // After the deadline nobody else handles a rejection.
  const { promise: deadline, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(late()), milliseconds)
  try {
    return await Promise.race([promise, deadline])
  } finally {
    clearTimeout(timer)
  }
}

export class DeadlineError extends Error {
  constructor(milliseconds: number) {
    super(`not done within ${milliseconds} ms`)
    this.name = 'DeadlineError'
  }
}
