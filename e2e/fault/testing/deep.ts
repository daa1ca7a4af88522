/** `./berth test --deep` runs many more rounds than a test of every change can. */
export const isDeep = process.env.BERTH_DEEP === '1'

export function rounds({ short, deep }: { readonly short: number; readonly deep: number }): number {
  return isDeep ? deep : short
}

/** For tests that are too long for the short form. */
export const deepOnly = { skip: isDeep ? false : 'only with ./berth test --deep' }
