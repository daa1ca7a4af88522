/**
 * Waits for all, also when one fails, and then throws the first failure. Where a failure is cleaned up after, nothing
 * may still be at work meanwhile.
 */
export async function settleAll<Results extends readonly unknown[]>(
  promises: readonly [...{ [Index in keyof Results]: Promise<Results[Index]> | Results[Index] }],
): Promise<Results> {
  await Promise.allSettled(promises)
  return (await Promise.all(promises)) as unknown as Results
}
