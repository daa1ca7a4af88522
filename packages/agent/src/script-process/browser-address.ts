import type { Browser } from '../browser/browser.ts'

/** The request that code sends before it connects. */
export const browserAddressQuestion = 'browserAddress'

/** The address of the browser's websocket once the browser is ready: a starting browser must not be disturbed. */
export async function browserAddress(browser: Browser): Promise<string> {
  const { port, browserPath } = await browser.endpoint()
  return `ws://127.0.0.1:${port}${browserPath}`
}
