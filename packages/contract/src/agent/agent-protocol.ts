/*
 * The parts of the protocol that need no schema. The agent loads this file at every start of a session, and Zod would
 * cost 30 ms and 8 MB each time.
 */

/** Incremented with every change that an older server or agent would misread. */
export const agentContractVersion = 4

/**
 * Classic WebDriver: plain HTTP to `/webdriver/status`, `/webdriver/session` and below. An upgrade of
 * `/webdriver/session/{id}` is BiDi in that classic session, without `session.new`.
 */
export const agentWebDriverPath = '/webdriver'
export const agentWebDriverSessionPath = `${agentWebDriverPath}/session`
export const agentWebDriverStatusPath = `${agentWebDriverPath}/status`

/** Matches the path of a classic session and the rest of the path. */
export const webDriverSessionPattern = new RegExp(`^${agentWebDriverSessionPath}/([0-9a-f]{32})(/.*)?$`)

/** The root of all operations that a session's callers can request. */
export const agentOperationsPath = '/operations'

/** Plain HTTP that the agent forwards unchanged to Chromium's DevTools server: `/json/version`, `/json/list`, … */
export const agentDiscoveryPath = '/json'

/**
 * The browser state as a tar archive, compressed with Zstandard. `PUT` loads a state and responds when Chromium uses
 * it, or before the first launch when it is ready to be used. `?tabs=restore` opens the saved tabs, `?tabs=blank` an
 * empty page. `DELETE` restores the previous state of a running browser. `POST` ends Chromium permanently, so that all
 * of its state is on disk, and responds with that state.
 */
export const agentProfilePath = '/profile'

/**
 * `POST` of `multipart/form-data` loads extensions, in the format of `POST /browsers/{id_or_name}/extensions`. It
 * responds when they are loaded, which before the first launch means when that has loaded them.
 */
export const agentExtensionsPath = '/extensions'

/** The port on the machine's loopback where Chromium fetches extensions that policies install. */
export const policyExtensionPort = 10001
