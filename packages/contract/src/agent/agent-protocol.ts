/*
 * What both sides must agree on, without a schema: the agent loads this at every start of a session, and Zod would cost
 * it 30 ms and 8 MB each time.
 */

/** Raised with every change that an older server or agent would misread. */
export const agentContractVersion = 2

export const agentStatePath = '/state'
export const agentStopPath = '/stop'
export const agentConfigurationPath = '/configuration'

/** `GET` answers `application/x-ndjson`, one AgentEvent a line, until either side ends. */
export const agentEventsPath = '/events'

/**
 * Classic WebDriver: plain HTTP to `/webdriver/status`, `/webdriver/session` and below. An upgrade of
 * `/webdriver/session/{id}` is BiDi in that classic session, without `session.new`.
 */
export const agentWebDriverPath = '/webdriver'
export const agentWebDriverSessionPath = `${agentWebDriverPath}/session`
export const agentWebDriverStatusPath = `${agentWebDriverPath}/status`

/** The path of a classic session, and what follows it. */
export const webDriverSessionPattern = /^\/webdriver\/session\/([0-9a-f]{32})(\/.*)?$/

/** Everything that a session's callers may ask of the agent; the paths of its operations follow. */
export const agentOperationsPath = '/operations'

/** Plain HTTP that the agent passes on to Chromium's DevTools server as it is: `/json/version`, `/json/list`, … */
export const agentDiscoveryPath = '/json'

/**
 * The state of the browser as a tar archive, compressed with Zstandard. `PUT` takes one in and answers when Chromium
 * uses it, or, before its first start, can: `?tabs=restore` opens the tabs that it has saved, `?tabs=blank` an empty
 * page. `DELETE` goes back to the state before, where one was replaced in the running browser. `POST` ends Chromium for
 * good, so that its state is all on disk, and answers with it.
 */
export const agentProfilePath = '/profile'

/**
 * `POST` of `multipart/form-data` takes extensions in, as `POST /browsers/{id_or_name}/extensions` has them, and answers
 * when they are loaded; before the first launch, when that has loaded them.
 */
export const agentExtensionsPath = '/extensions'

/** On the loopback of the machine: where Chromium fetches the extensions that policies tell it to install. */
export const policyExtensionPort = 10001
