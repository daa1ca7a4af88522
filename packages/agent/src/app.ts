import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  agentDiscoveryPath,
  agentEventsPath,
  agentStatePath,
  agentStopPath,
} from '@berth/contract/agent/agent-protocol.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { errorBody, pathOf, toBerthError } from '@berth/runtime/http/error-reply.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { AgentEvents } from './agent-events.ts'
import { BidiRelay } from './bidi/bidi-relay.ts'
import type { Browser } from './browser/browser.ts'
import { CdpRelay, refuse } from './cdp/cdp-relay.ts'
import { answerDiscovery } from './discovery.ts'
import { http } from './http.ts'

/** A watcher that takes nothing for so long is let go; it asks again, and then learns the current state. */
const maxUnreadEventBytes = 64 * 1024

interface AppOptions {
  readonly browser: Browser
  readonly runFolder: string
  readonly events: AgentEvents
  readonly logger: Logger
  readonly stop: () => Promise<void>
}

/**
 * Every route of the agent, on Node's bare server: there are four, and a framework would cost every start of a session
 * 80 ms of the processor that Chromium needs at that moment.
 */
export function createApp(options: AppOptions): Server {
  const { browser, runFolder, events, logger } = options
  const server = http.createServer((request, response) => {
    answer(options, request, response).catch((thrown: unknown) => replyWithError(response, thrown, logger))
  })
  const shared = { endpoint: () => browser.endpoint(), activity: events.activity }
  const cdp = new CdpRelay(shared)
  const bidi = new BidiRelay({ ...shared, runFolder, logger })
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const path = request.url ?? ''
    if (CdpRelay.serves(path)) void cdp.connect(request, socket, head)
    else if (BidiRelay.serves(path)) void bidi.connect(request, socket, head)
    else refuse(socket, 404, 'there is no such websocket')
  })
  return server
}

async function answer(options: AppOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const method = request.method ?? ''
  const path = pathOf(request.url ?? '')
  if (path === agentDiscoveryPath || path.startsWith(`${agentDiscoveryPath}/`)) {
    return answerDiscovery(options.browser.endpoint(), request, response)
  }
  request.resume() // No route of ours takes a body.
  switch (`${method} ${path}`) {
    case `GET ${agentStatePath}`:
      return replyWithJson(response, 200, options.events.state)
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

function streamEvents(events: AgentEvents, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  const unwatch = events.watch((event) => {
    response.write(`${JSON.stringify(event)}\n`)
    if (response.writableLength > maxUnreadEventBytes) response.destroy()
  })
  response.on('close', unwatch)
}

function replyWithJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body))
}

function replyWithError(response: ServerResponse, thrown: unknown, logger: Logger): void {
  const error = toBerthError(thrown)
  if (error.status === 500) logger.error({ err: error.cause ?? error }, error.message)
  if (response.headersSent) response.destroy()
  else replyWithJson(response, error.status, errorBody(error))
}
