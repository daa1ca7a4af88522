import type { Deadline } from '../../script-process/deadline.ts'
import { AttachedTab } from './attached-tab.ts'
import { BrowserLine } from './browser-line.ts'
import { type JsOptions, js } from './evaluate.ts'
import { inputHelpers } from './input-helpers.ts'
import { pageHelpers } from './page-helpers.ts'
import { tabHelpers } from './tab-helpers.ts'
import { waitHelpers } from './wait-helpers.ts'

interface BrowserHelpersOptions {
  readonly address: () => Promise<string>
  readonly deadline: Deadline
}

/** Functions for code of the session to control the browser with CDP. The first use opens the connection. */
export function browserHelpers({ address, deadline }: BrowserHelpersOptions) {
  const line = new BrowserLine(address, deadline)
  const tab = new AttachedTab(line)
  const helpers = {
    /** Without a session the command goes to the tab, with null to the browser. */
    async cdp(method: string, params: object = {}, sessionId?: string | null) {
      if (sessionId === undefined) return tab.send(method, params)
      return line.send(method, params, sessionId ?? undefined)
    },
    drainEvents: () => line.drain(),
    ...pageHelpers(tab),
    ...inputHelpers(tab, deadline),
    ...tabHelpers(line, tab, deadline),
    ...waitHelpers(line, tab, deadline),
    async js(code: unknown, options?: JsOptions) {
      return js(tab, code, options)
    },
    async httpGet(url: string, headers: Record<string, string> = {}, timeoutSec = 20) {
      const response = await fetch(url, { headers, signal: AbortSignal.timeout(deadline.within(timeoutSec)) })
      const text = await response.text()
      if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 200)}`)
      return text
    },
  }
  return { tab, helpers }
}
