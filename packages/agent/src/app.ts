import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { setTimeout as delay, setImmediate as immediate } from 'node:timers/promises'
import type { AgentConfig, BrowserConfiguration, CaptchaOutcome } from '@berth/contract/agent/agent-endpoints.ts'
import { agentRoutes } from '@berth/contract/agent/agent-routes.ts'
import { agentUpgrades } from '@berth/contract/agent/agent-upgrades.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { memoize } from '@berth/runtime/async/memoize.ts'
import {
  mountRoutes,
  type RouteHandler,
  type RouteHandlers,
  type UpgradeHandler,
} from '@berth/runtime/http/mount-routes.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { BidiRelay } from './bidi/bidi-relay.ts'
import type { Browser } from './browser/browser.ts'
import { profileRequests } from './browser/profile/profile-requests.ts'
import { CdpRelay, refuse } from './cdp/cdp-relay.ts'
import { answerDiscovery } from './cdp/discovery.ts'
import type { Computer } from './computer/computer.ts'
import type { ExtensionSet } from './extensions/extension-set.ts'
import { formRequests } from './form-fill/form-requests.ts'
import { readJson, sendJson } from './http/json-body.ts'
import { http } from './http/node-http.ts'
import { replyWithError } from './http/reply-with-error.ts'
import { LiveView } from './live-view/live-view.ts'
import { loginRequests } from './login/login-requests.ts'
import type { ServiceLogs } from './logs/service-logs.ts'
import type { Capture } from './network/capture.ts'
import type { EventLog } from './reporting/event-log.ts'
import type { StateFeed } from './reporting/state-feed.ts'
import type { CaptchaTasks } from './telemetry/captcha-tasks.ts'
import type { TelemetryCollector } from './telemetry/telemetry-collector.ts'
import { ClassicSessions } from './webdriver/classic-sessions.ts'
import { answerWebDriver } from './webdriver/webdriver-server.ts'

/** Disables Node's limit: each handler decides how long a request body may pause. */
const noRequestTimeout = 0
const eventFlushMilliseconds = 5

interface AppOptions {
  readonly config: AgentConfig
  readonly browser: Browser
  readonly capture: Pick<Capture, 'rehearse'>
  readonly extensions: ExtensionSet
  readonly state: StateFeed
  readonly events: EventLog
  readonly telemetry: TelemetryCollector
  readonly captchaTasks?: CaptchaTasks | undefined
  readonly serviceLogs: ServiceLogs
  readonly logger: Logger
  readonly stop: () => Promise<void>
}

/**
 * Every route of the agent, on Node's bare server: there are few, and a framework would cost every start of a session
 * 80 ms of the processor that Chromium needs at that moment.
 */
export function createApp(options: AppOptions): Server {
  const { config, browser, state, telemetry, logger } = options
  const webDriver = new ClassicSessions({
    endpoint: () => browser.endpointWithPage(),
    homeFolder: config.home_folder,
    logger,
  })
  const shared = { endpoint: () => browser.endpoint(), activity: state.activity }
  const cdp = new CdpRelay({
    endpoint: () => browser.clientEndpoint(),
    activity: state.activity,
    telemetry,
    prepare: (command) => browser.prepare(command),
  })
  const bidi = new BidiRelay({ ...shared, sessions: webDriver, runFolder: config.run_folder, logger })
  const toChromium: UpgradeHandler = (...upgrade) => void cdp.connect(...upgrade)
  const toMapper: UpgradeHandler = (...upgrade) => void bidi.connect(...upgrade)
  const computer = memoize(async () => {
    const module = await import('./computer/computer.ts')
    return new module.Computer({ browser, config })
  })
  const liveView = new LiveView({ config, browser, activity: state.activity, telemetry, computer })
  const toScreen =
    (isReadOnly: boolean): UpgradeHandler =>
    (request, client, head) =>
      void liveView.connect(request, client, { head, isReadOnly })

  const server = http.createServer({ requestTimeout: noRequestTimeout })
  mountRoutes(server, {
    routes: agentRoutes,
    handlers: handlersOf(options, { server, webDriver, liveView, computer, cdp }),
    upgrades: agentUpgrades,
    upgradeHandlers: {
      cdp: toChromium,
      devtools: toChromium,
      webdriver: toMapper,
      'webdriver-session': toMapper,
      live: toScreen(false),
      'live-read-only': toScreen(true),
    },
    refuseUpgrade: (_request, socket) => refuse(socket, 404, 'there is no such websocket'),
    replyWithError: (request, response, thrown) => replyWithError(request, response, { thrown, logger }),
  })
  return server
}

interface SharedParts {
  readonly server: Server
  readonly cdp: CdpRelay
  readonly webDriver: ClassicSessions
  readonly liveView: LiveView
  readonly computer: () => Promise<Computer>
}

function handlersOf(
  options: AppOptions,
  { server, webDriver, liveView, computer, cdp }: SharedParts,
): RouteHandlers<typeof agentRoutes> {
  const { config, browser, capture, extensions, state, events } = options
  const { telemetry, captchaTasks, serviceLogs, logger, stop } = options
  const { activity } = state
  // Loaded on first use: most sessions use few operations.
  const operations = memoize(async () => {
    const { OperationServer } = await import('./operations/operation-server.ts')
    return new OperationServer({ config, browser, telemetry, logger, activity, computer, serviceLogs })
  })
  const extensionLoader = memoize(async () => {
    const { ExtensionLoader } = await import('./extensions/extension-loader.ts')
    return new ExtensionLoader({ homeFolder: config.home_folder, runFolder: config.run_folder, browser, extensions })
  })
  const pages = memoize(async () => {
    const { PageFetcher } = await import('./page-fetch/page-fetcher.ts')
    return new PageFetcher(browser)
  })
  const thumbnails = memoize(async () => {
    const { Thumbnails } = await import('./computer/thumbnail.ts')
    return new Thumbnails(browser)
  })
  const recorder = memoize(async () => {
    const { Recorder } = await import('./recorder/recorder.ts')
    return new Recorder(browser)
  })
  const rehearseAll = async () => {
    await (await extensionLoader()).rehearse()
    await capture.rehearse()
    if (!browser.hasBegun) return browser.rehearseProfile()
    await browser.rehearseResize()
    const { rehearseClient } = await import('./cdp/rehearse-client.ts')
    await rehearseClient(server, config.run_folder)
  }
  const discover: RouteHandler = (request, response) => answerDiscovery(browser.endpoint(), request, response)
  return {
    readState: (_request, response) => sendJson(response, 200, state.state),
    followState: (_request, signal) => state.follow(signal),
    followEvents: (request, signal) => events.follow(readPosition(request), signal),
    acknowledgeEvents: async (request, response) => {
      events.acknowledge((await readJson<{ sequence: number }>(request)).sequence)
      response.writeHead(204).end()
    },
    followTelemetry: (request, signal) => telemetry.follow(readPosition(request), signal),
    acknowledgeTelemetry: async (request, response) => {
      telemetry.acknowledge((await readJson<{ sequence: number }>(request)).sequence)
      response.writeHead(204).end()
    },
    reportMemoryKills: async (request, response) => {
      await telemetry.reportMemoryKills((await readJson<{ processes: number }>(request)).processes)
      response.writeHead(204).end()
    },
    answerCaptcha: async (request, response) => {
      const { task_id, outcome } = await readJson<{ task_id: string; outcome: CaptchaOutcome }>(request)
      captchaTasks?.answer(task_id, outcome)
      response.writeHead(204).end()
    },
    endClients: async (_request, response) => {
      cdp.endAll()
      // Gives the resulting events time to reach the server before the response.
      await delay(eventFlushMilliseconds)
      telemetry.flush()
      await immediate()
      response.writeHead(204).end()
    },
    stop: async (_request, response) => {
      await stop()
      response.writeHead(204).end()
    },
    configure: async (request, response) => {
      const asked = await readJson<BrowserConfiguration>(request)
      const { telemetry: captured, force, rehearse, is_restore: isRestore, ...configuration } = asked
      if (configuration.viewport && !force && !config.headless && liveView.hasViewers) {
        throw new BerthError('viewport_in_use', { use: 'a live view is open' })
      }
      if (rehearse) await rehearseAll()
      // First, to capture the effects of the other changes.
      if (captured !== undefined) await telemetry.configure(captured)
      await browser.configure(configuration)
      // A change counts as activity: the idle time of a reserve browser starts now.
      if (!isRestore) activity.restart()
      response.writeHead(204).end()
    },
    fetchPage: async (request, response) => {
      response.once('close', activity.begin())
      const left = new AbortController()
      response.once('close', () => left.abort())
      const page = await (await pages()).fetch(await readJson(request), left.signal)
      if (!response.destroyed) sendJson(response, 200, page)
    },
    takeThumbnail: async (_request, response) => {
      const jpeg_b64 = await (await thumbnails()).take().catch(() => undefined) // The page is busy or closing.
      if (!response.destroyed) sendJson(response, 200, { jpeg_b64 })
    },
    ...formRequests(browser, activity),
    ...loginRequests(browser, activity),
    record: async (request, response) => (await recorder()).record(await readJson(request), response),
    endRecording: async (request, response) => {
      ;(await recorder()).end((await readJson<{ id: string }>(request)).id)
      response.writeHead(204).end()
    },
    ...profileRequests(browser, activity),
    takeExtensions: async (request, response) => {
      // Before the first launch no idle time is counted.
      if (browser.hasBegun) response.once('close', activity.begin())
      await (await extensionLoader()).take(request)
      response.writeHead(201, { 'content-length': 0 }).end()
    },
    operation: async (request, response) => {
      response.once('close', activity.begin())
      await browser.settled
      await (await operations()).answer(request, response)
    },
    webDriver: (request: IncomingMessage, response: ServerResponse) => {
      response.once('close', activity.begin())
      return answerWebDriver(webDriver, logger, request, response)
    },
    discover,
    discoverBelow: discover,
    readDevToolsFile: discover,
  }
}

/** The sequence number that a reader wants to continue after, if it names one. */
function readPosition({ url = '' }: IncomingMessage): number | undefined {
  const after = new URLSearchParams(url.split('?')[1]).get('after') ?? ''
  return /^\d{1,15}$/.test(after) ? Number(after) : undefined
}
