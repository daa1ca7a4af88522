import type { Browser } from '../browser/browser.ts'

/** What code asks the agent for, before it connects. */
export const browserAddressQuestion = 'browserAddress'

/** The address of the browser's websocket, once the browser is there: one that has just begun is not to be disturbed. */
export async function browserAddress(browser: Browser): Promise<string> {
  const { port, browserPath } = await browser.endpoint()
  return `ws://127.0.0.1:${port}${browserPath}`
}
