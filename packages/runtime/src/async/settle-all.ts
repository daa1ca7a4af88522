/**
 * Waits until all promises have settled, even when one fails, and then throws the first failure. Use it when the
 * cleanup after a failure must not run while other work still does.
 */
export async function settleAll<Results extends readonly unknown[]>(
  promises: readonly [...{ [Index in keyof Results]: Promise<Results[Index]> | Results[Index] }],
): Promise<Results> {
  await Promise.allSettled(promises)
  return (await Promise.all(promises)) as unknown as Results
}
