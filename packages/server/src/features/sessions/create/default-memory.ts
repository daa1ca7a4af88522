import type { BrowserMemory } from '@berth/contract/browsers/browser.ts'

/** A headless browser needs little; a headful one gets what the field gives it. */
export function defaultMemory(headless: boolean): BrowserMemory {
  return headless ? '1GiB' : '8GiB'
}
