import type { BrowserMemory } from '@berth/contract/browsers/browser.ts'

export function defaultMemory(headless: boolean): BrowserMemory {
  return headless ? '1GiB' : '8GiB'
}
