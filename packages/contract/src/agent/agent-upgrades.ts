import { defineUpgrade } from '../upgrade.ts'
import { agentWebDriverPath, agentWebDriverSessionPath } from './agent-protocol.ts'
import { agentRoutes } from './agent-routes.ts'

/** The DevTools endpoint of the browser, whatever its current id. */
export const cdpUpgrade = defineUpgrade({ name: 'cdp', path: '/cdp' })

/** The paths of Chromium's own DevTools server. */
export const devToolsUpgrade = defineUpgrade({ name: 'devtools', path: agentRoutes.readDevToolsFile.path })

/** WebDriver BiDi. Each connection may have one BiDi session, which `session.new` starts. */
const webDriverUpgrade = defineUpgrade({ name: 'webdriver', path: agentWebDriverPath })

/** BiDi in a classic WebDriver session, without `session.new`. */
const webDriverSessionUpgrade = defineUpgrade({
  name: 'webdriver-session',
  path: new RegExp(`^${agentWebDriverSessionPath}/[0-9a-f]{32}$`),
})

/**
 * The screen: RFB in binary messages for a headful session, otherwise a screencast. `live-view.ts` defines the text
 * messages.
 */
export const liveViewUpgrade = defineUpgrade({ name: 'live', path: '/live' })

/** The same for viewers whose input the agent drops. Clients request it with `?readOnly=true`. */
export const readOnlyLiveViewUpgrade = defineUpgrade({ name: 'live-read-only', path: '/live/read-only' })

/** Every WebSocket of a session. */
export const agentUpgrades = [
  cdpUpgrade,
  devToolsUpgrade,
  webDriverUpgrade,
  webDriverSessionUpgrade,
  liveViewUpgrade,
  readOnlyLiveViewUpgrade,
] as const
