/** Does the work for the first caller, and gives every other one its result. After a failure the next caller has it done again. */
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
