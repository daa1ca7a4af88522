import { agentWebDriverPath } from '@berth/contract/agent/agent-protocol.ts'
import { cdpUpgrade, liveViewUpgrade } from '@berth/contract/agent/agent-upgrades.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'

/** Everything of one session lives below this path, so that a load balancer can route by it. */
export const sessionRoot = '/s'

/** Below a session of classic WebDriver. Selenium's clients take nothing else for an address of CDP. */
export const seleniumCdpPath = '/se/cdp'

/** Where a client of classic WebDriver finds BiDi and CDP, under the names that it looks for. */
export function webDriverSessionUrls(webdriverUrl: string, webDriverSession: string) {
  const at = (path: string) => {
    const url = new URL(webdriverUrl)
    url.pathname += path
    return url.href
  }
  const session = `/session/${encodeURIComponent(webDriverSession)}`
  return { webSocketUrl: at(session), 'se:cdp': at(`${session}${seleniumCdpPath}`) }
}

/** The addresses of a session; the token stands in the query, where the official clients look for it. */
export function sessionUrls(publicUrl: string, id: SessionId, token: string) {
  const baseUrl = `${publicUrl}${sessionRoot}/${id}`
  const websocketBase = baseUrl.replace(/^http/, 'ws')
  return {
    cdp_ws_url: `${websocketBase}${cdpUpgrade.path}?jwt=${token}`,
    webdriver_ws_url: `${websocketBase}${agentWebDriverPath}?jwt=${token}`,
    base_url: baseUrl,
  }
}

/** The page that shows the session's screen, to whoever has its address. */
export function liveViewUrl(publicUrl: string, id: SessionId, token: string): string {
  return `${publicUrl}${sessionRoot}/${id}${liveViewUpgrade.path}?jwt=${token}`
}
