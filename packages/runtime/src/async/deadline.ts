/**
 * Rejects with `late()` when the promise has not settled in time. It ends the waiting, not the work: give the work an
 * AbortSignal where it should end too.
 */
export async function within<Value>(
  milliseconds: number,
  promise: Promise<Value>,
  late: () => Error = () => new DeadlineError(milliseconds),
): Promise<Value> {
  promise.catch(() => {}) // After the deadline nobody else hears how it ends.
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
