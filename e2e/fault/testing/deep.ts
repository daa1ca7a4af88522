/** `./berth test --deep` goes through many more rounds than a test on every change can. */
const isDeep = process.env.BERTH_DEEP === '1'

export function rounds({ short, deep }: { readonly short: number; readonly deep: number }): number {
  return isDeep ? deep : short
}

/** For tests that only the deep form has time for. */
export const deepOnly = { skip: isDeep ? false : 'only with ./berth test --deep' }
