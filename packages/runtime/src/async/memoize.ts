/**
 * Does the work for the first caller and returns the same result to every later one. After a failure, the next caller
 * starts the work again.
 */
export function memoize<Value>(work: () => Promise<Value>): () => Promise<Value> {
  let result: Promise<Value> | undefined
  return () => {
    result ??= work().catch((error: unknown) => {
      result = undefined
      throw error
    })
    return result
  }
}
