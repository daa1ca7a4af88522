import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { agentDiscoveryPath, agentEventsPath, getAgentState, stopAgent } from '@berth/contract/agent/agent-endpoints.ts'
import { replyWithErrors } from '@berth/runtime/http/error-reply.ts'
import { acceptJsonBodies } from '@berth/runtime/http/json-body.ts'
import { mount } from '@berth/runtime/http/mount.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import fastify, { type FastifyInstance } from 'fastify'
import type { AgentEvents } from './agent-events.ts'
import type { Browser } from './browser/browser.ts'
import { CdpRelay, refuse } from './cdp/cdp-relay.ts'
import { answerDiscovery } from './discovery.ts'

interface AppOptions {
  readonly browser: Browser
  readonly events: AgentEvents
  readonly logger: Logger
  readonly stop: () => Promise<void>
}

/** Every route of the agent. */
export function createApp({ browser, events, logger, stop }: AppOptions): FastifyInstance {
  const app = fastify({ forceCloseConnections: true })
  acceptJsonBodies(app)
  replyWithErrors(app, logger)

  mount(app, getAgentState, () => events.state)
  mount(app, stopAgent, () => stop())

  app.get(agentEventsPath, (_request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'application/x-ndjson' })
    const unwatch = events.watch((event) => reply.raw.write(`${JSON.stringify(event)}\n`))
    reply.raw.on('close', unwatch)
  })

  for (const url of [agentDiscoveryPath, `${agentDiscoveryPath}/*`]) {
    app.route({
      method: ['GET', 'PUT'],
      url,
      handler: (request, reply) => {
        reply.hijack()
        return answerDiscovery(browser.endpoint(), request.raw, reply.raw).catch(() => reply.raw.destroy())
      },
    })
  }

  const relay = new CdpRelay({ endpoint: () => browser.endpoint(), activity: events.activity })
  app.server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (CdpRelay.serves(request.url ?? '')) void relay.connect(request, socket, head)
    else refuse(socket, 404, 'there is no such websocket')
  })
  return app
}
