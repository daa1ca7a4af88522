import { agentWebDriverPath } from '@berth/contract/agent/agent-protocol.ts'
import { cdpUpgrade, liveViewUpgrade } from '@berth/contract/agent/agent-upgrades.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'

/** The addresses of one session are below this path, so that a load balancer can route by it. */
export const sessionRoot = '/s'

/** Below a session of classic WebDriver. Selenium clients accept no other path for CDP. */
export const seleniumCdpPath = '/se/cdp'

/** The addresses of BiDi and CDP for a client of classic WebDriver, under the names that it expects. */
export function webDriverSessionUrls(webdriverUrl: string, webDriverSession: string) {
  const at = (path: string) => {
    const url = new URL(webdriverUrl)
    url.pathname += path
    return url.href
  }
  const session = `/session/${encodeURIComponent(webDriverSession)}`
  return { webSocketUrl: at(session), 'se:cdp': at(`${session}${seleniumCdpPath}`) }
}

/** The addresses of a session. The token is in the query, where the official clients expect it. */
export function sessionUrls(publicUrl: string, id: SessionId, token: string) {
  const baseUrl = `${publicUrl}${sessionRoot}/${id}`
  const websocketBase = baseUrl.replace(/^http/, 'ws')
  return {
    cdp_ws_url: `${websocketBase}${cdpUpgrade.path}?jwt=${token}`,
    webdriver_ws_url: `${websocketBase}${agentWebDriverPath}?jwt=${token}`,
    base_url: baseUrl,
  }
}

/** The page that shows the session's screen. Its address grants access. */
export function liveViewUrl(publicUrl: string, id: SessionId, token: string): string {
  return `${publicUrl}${sessionRoot}/${id}${liveViewUpgrade.path}?jwt=${token}`
}
