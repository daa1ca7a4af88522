import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { finished, pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import {
  agentConfigurationPath,
  agentDiscoveryPath,
  agentEventsPath,
  agentExtensionsPath,
  agentOperationsPath,
  agentProfilePath,
  agentStatePath,
  agentStopPath,
} from '@berth/contract/agent/agent-protocol.ts'
import { agentUpgrades, devToolsUpgrade } from '@berth/contract/agent/agent-upgrades.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { errorBody, pathOf, retryHeaders, toBerthError } from '@berth/runtime/http/error-reply.ts'
import { mountUpgrades, type UpgradeHandler } from '@berth/runtime/http/mount-upgrades.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { AgentEvents } from './agent-events.ts'
import { BidiRelay } from './bidi/bidi-relay.ts'
import type { Browser } from './browser/browser.ts'
import { CdpRelay, refuse } from './cdp/cdp-relay.ts'
import { answerDiscovery } from './discovery.ts'
import type { ExtensionLoader } from './extensions/extension-loader.ts'
import type { ExtensionSet } from './extensions/extension-set.ts'
import { http } from './http.ts'
import { readJson, sendJson } from './json-body.ts'
import type { OperationServer } from './operations/operation-server.ts'
import { streamEvents } from './stream-events.ts'
import { ClassicSessions } from './webdriver/classic-sessions.ts'
import { answerWebDriver, servesWebDriver } from './webdriver/webdriver-server.ts'

/** No limit: how long a body may stop is for whoever reads it to say. */
const bodiesTakeTheirTime = 0

/** How long the rest of a body that was refused may take to arrive. */
const refusedBodyLimitMilliseconds = 10_000

interface AppOptions {
  readonly config: AgentConfig
  readonly browser: Browser
  readonly extensions: ExtensionSet
  readonly events: AgentEvents
  readonly logger: Logger
  readonly stop: () => Promise<void>
}

/**
 * Every route of the agent, on Node's bare server: there are few, and a framework would cost every start of a session
 * 80 ms of the processor that Chromium needs at that moment.
 */
export function createApp(options: AppOptions): Server {
  const { config, browser, extensions, events, logger } = options
  const operations = onFirstUse(async () => {
    const { OperationServer } = await import('./operations/operation-server.ts')
    return new OperationServer({ config, browser, logger, activity: events.activity })
  })
  const extensionLoader = onFirstUse(async () => {
    const { ExtensionLoader } = await import('./extensions/extension-loader.ts')
    return new ExtensionLoader({ homeFolder: config.home_folder, browser, extensions })
  })
  const shared = { endpoint: () => browser.endpoint(), activity: events.activity }
  const webDriver = new ClassicSessions({
    endpoint: () => browser.endpointWithPage(),
    homeFolder: config.home_folder,
    logger,
  })
  const server = http.createServer({ requestTimeout: bodiesTakeTheirTime }, (request, response) => {
    answer({ ...options, operations, extensionLoader, webDriver }, request, response).catch((thrown: unknown) =>
      replyWithError(request, response, thrown, logger),
    )
  })
  const cdp = new CdpRelay({ ...shared, prepare: (command) => browser.prepare(command) })
  const bidi = new BidiRelay({ ...shared, sessions: webDriver, runFolder: config.run_folder, logger })
  const toChromium: UpgradeHandler = (...upgrade) => void cdp.connect(...upgrade)
  const toMapper: UpgradeHandler = (...upgrade) => void bidi.connect(...upgrade)
  mountUpgrades(
    server,
    agentUpgrades,
    { cdp: toChromium, devtools: toChromium, webdriver: toMapper, 'webdriver-session': toMapper },
    (_request, socket) => refuse(socket, 404, 'there is no such websocket'),
  )
  return server
}

interface AnswerOptions extends AppOptions {
  /** Loaded with the first operation: most of what a session can do is never asked of it. */
  readonly operations: () => Promise<OperationServer>
  readonly extensionLoader: () => Promise<ExtensionLoader>
  readonly webDriver: ClassicSessions
}

async function answer(options: AnswerOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const method = request.method ?? ''
  const path = pathOf(request.url ?? '')
  const isFrontend = method === 'GET' && path.startsWith(devToolsUpgrade.path)
  if (path === agentDiscoveryPath || path.startsWith(`${agentDiscoveryPath}/`) || isFrontend) {
    return answerDiscovery(options.browser.endpoint(), request, response)
  }
  if (path.startsWith(`${agentOperationsPath}/`)) {
    const end = options.events.activity.begin()
    response.once('close', end)
    return (await options.operations()).answer(request, response)
  }
  if (servesWebDriver(path)) {
    response.once('close', options.events.activity.begin())
    return answerWebDriver(options.webDriver, options.logger, request, response)
  }
  if (path === agentProfilePath) return answerProfile(options, request, response)
  if (method === 'POST' && path === agentExtensionsPath) {
    // Before the first launch there is no time that could run out.
    if (options.browser.hasBegun) response.once('close', options.events.activity.begin())
    await (await options.extensionLoader()).take(request)
    response.writeHead(201, { 'content-length': 0 }).end()
    return
  }
  if (method === 'POST' && path === agentConfigurationPath) {
    await options.browser.configure(await readJson(request))
    response.writeHead(204).end()
    return
  }
  request.resume() // No other route takes a body.
  switch (`${method} ${path}`) {
    case `GET ${agentStatePath}`:
      return sendJson(response, 200, options.events.state)
    case `GET ${agentEventsPath}`:
      return streamEvents(options.events, response)
    case `POST ${agentStopPath}`:
      await options.stop()
      response.writeHead(204).end()
      return
    default:
      throw new BerthError('route_not_found', { method, path })
  }
}

async function answerProfile(
  { browser, events }: AppOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  switch (request.method) {
    case 'PUT': {
      if (browser.hasBegun) response.once('close', events.activity.begin())
      const tabs = new URLSearchParams(request.url?.split('?')[1]).get('tabs') === 'blank' ? 'blank' : 'restore'
      try {
        await browser.loadProfile(request, tabs)
        response.writeHead(204).end()
      } catch (error) {
        // An answer in the middle of what the server sends would be lost with the connection.
        await finished(request.resume()).catch(() => {})
        sendJson(response, 500, { code: 'profile_not_loadable', message: (error as Error).message })
      }
      return
    }
    case 'DELETE':
      request.resume()
      await browser.takeProfileBack()
      response.writeHead(204).end()
      return
    case 'POST': {
      request.resume()
      const archive = await browser.giveOutProfile()
      response.writeHead(200, { 'content-type': 'application/octet-stream' })
      // An archive that fails half way is a broken answer: nobody must take it for a whole one.
      await pipeline(archive, response).catch(() => response.destroy())
      return
    }
    default:
      throw new BerthError('method_not_allowed', { allowed: 'PUT, DELETE and POST' })
  }
}

async function replyWithError(
  request: IncomingMessage,
  response: ServerResponse,
  thrown: unknown,
  logger: Logger,
): Promise<void> {
  const error = toBerthError(thrown)
  const requestId = request.headers['x-request-id']
  if (error.code === 'internal_error') {
    logger.error({ err: error.cause ?? error, requestId }, error.message)
    if (requestId !== undefined && !response.headersSent) response.setHeader('x-request-id', requestId)
  }
  if (response.headersSent) {
    response.destroy()
    return
  }
  for (const [name, value] of Object.entries(retryHeaders(error))) response.setHeader(name, value)
  // What is left of a refused body is of no use to anybody. But its sender reads no answer before it is taken, and with
  // the answer the connection ends.
  request.resume()
  const late = delay(refusedBodyLimitMilliseconds, undefined, { ref: false })
  if (!request.complete) await Promise.race([once(request, 'end'), once(request, 'close'), late]).catch(() => {})
  sendJson(response, error.status, errorBody(error))
}

function onFirstUse<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined
  return () => {
    made ??= make()
    return made
  }
}
