import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import {
  type AgentConfig,
  type AgentEvent,
  type AgentState,
  agentContractVersion,
  agentDiscoveryPath,
  agentEventsPath,
  agentProfilePath,
  getAgentState,
  navigateActivePage,
  type ServiceName,
  setViewport,
  stopAgent,
} from '@berth/contract/agent/agent-endpoints.ts'
import { agentExtensionsPath, agentOperationsPath, agentWebDriverPath } from '@berth/contract/agent/agent-protocol.ts'
import { agentUpgrades } from '@berth/contract/agent/agent-upgrades.ts'
import { findUpgrade } from '@berth/contract/upgrade.ts'
import { mount } from '@berth/runtime/http/mount.ts'
import fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import { WebSocketServer } from 'ws'

const browserPath = '/devtools/browser/fake'

/** Serves the agent contract in this process, without a browser. WebSockets echo what they receive. */
export class FakeAgent {
  /** Settles when the agent has ended, for any reason. */
  readonly ended: Promise<void>
  /** Handles the operations. */
  operate: RequestListener = (_request, response) => response.writeHead(404).end()
  /** Handles discovery in place of Chromium. */
  discover: RequestListener | undefined
  /** Handles classic WebDriver. */
  webDriver: RequestListener = (_request, response) => response.writeHead(404).end()
  /** Handles uploaded extensions. */
  takeExtensions: RequestListener = (request, response) => {
    request.resume().once('end', () => response.writeHead(201).end())
  }
  /** The viewports that the server requested, in order. */
  readonly viewports: AgentConfig['viewport'][] = []
  readonly navigations: string[] = []
  /** Handles each change of the viewport. */
  onResize: () => Promise<void> | void = () => {}
  readonly #app: FastifyInstance
  readonly #websockets = new WebSocketServer({ noServer: true })
  readonly #listeners = new Set<FastifyReply>()
  #state: AgentState = { contract_version: agentContractVersion, state: 'ready', idle_since: null }
  /** The loaded states as text, each with the requested tabs. */
  readonly loaded: { readonly state: string; readonly tabs: string | null }[] = []
  /** Runs after a state has arrived and before the response. */
  onProfile: () => Promise<void> = async () => {}
  /** How often the previous state was restored. */
  takenBack = 0
  /** Rejects the next states. */
  refusesProfiles = false
  /** Produces the state of its browser. */
  profile: (reply: FastifyReply) => unknown = (reply) => reply.send('the state of the fake browser')
  #thawed = Promise.withResolvers<void>()

  private constructor(initial: Partial<AgentState>) {
    this.#state = { ...this.#state, ...initial }
    this.#thawed.resolve()
    this.#app = this.#routes()
    this.ended = once(this.#app.server, 'close').then(() => {})
  }

  static async listen(socketPath: string, initial: Partial<AgentState> = {}): Promise<FakeAgent> {
    const agent = new FakeAgent(initial)
    await agent.#app.listen({ path: socketPath })
    return agent
  }

  /** Changes the agent's state and sends it to all listeners. */
  setState(changes: Partial<AgentState>): void {
    this.#state = { ...this.#state, ...changes }
    this.#tell({ event: 'state', ...this.#state })
  }

  /** Reports that a program ended and was restarted. */
  crash(service: ServiceName, detail: string, at = Date.now()): void {
    this.#tell({ event: 'service_crashed', service, detail, at })
  }

  /** Ends all event streams, but continues to run. */
  cutStreams(): void {
    for (const { raw } of this.#listeners) raw.destroy()
  }

  /** Requests wait until `thaw`. */
  freeze(): void {
    this.#thawed = Promise.withResolvers<void>()
  }

  thaw(): void {
    this.#thawed.resolve()
  }

  /** Ends at once, like a killed process: every connection is closed. */
  kill(): void {
    for (const websocket of this.#websockets.clients) websocket.terminate()
    this.#app.server.closeAllConnections()
    this.#app.server.close()
  }

  #routes(): FastifyInstance {
    const app = fastify()
    app.addHook('onRequest', () => this.#thawed.promise)
    // Runs before bodies are read, because some are streams.
    app.addHook('onRequest', async (request, reply) => {
      if (this.discover && request.url.startsWith(agentDiscoveryPath)) {
        reply.hijack()
        this.discover(request.raw, reply.raw)
        return
      }
      if (request.url.startsWith(`${agentWebDriverPath}/`)) {
        reply.hijack()
        this.webDriver(request.raw, reply.raw)
        return
      }
      const isOperation = request.url.startsWith(`${agentOperationsPath}/`)
      if (!isOperation && request.url !== agentExtensionsPath) return
      reply.hijack()
      if (isOperation) this.operate(request.raw, reply.raw)
      else this.takeExtensions(request.raw, reply.raw)
    })
    mount(app, getAgentState, () => this.#state)
    mount(app, stopAgent, ({ request }) => {
      request.raw.socket.once('close', () => this.kill())
    })
    app.post(agentExtensionsPath, () => {}) // Handled above.
    mount(app, setViewport, async ({ body }) => {
      this.viewports.push(body)
      await this.onResize()
    })
    mount(app, navigateActivePage, ({ body }) => void this.navigations.push(body.url))
    app.get(agentEventsPath, (_request, reply) => this.#listen(reply))
    app.addContentTypeParser('*', (_request, body, done) => done(null, body))
    app.put(agentProfilePath, async (request, reply) => {
      const state = await text(request.raw)
      if (this.refusesProfiles) return reply.code(500).send({ code: 'internal_error', message: 'no archive' })
      this.loaded.push({ state, tabs: (request.query as { tabs?: string }).tabs ?? null })
      await this.onProfile()
      return reply.code(204).send()
    })
    app.post(agentProfilePath, (_request, reply) => this.profile(reply))
    app.delete(agentProfilePath, (_request, reply) => {
      this.takenBack += 1
      return reply.code(204).send()
    })
    app.get(`${agentDiscoveryPath}/version`, () => ({
      Browser: 'Fake/1',
      webSocketDebuggerUrl: `ws://127.0.0.1:9222${browserPath}`,
    }))
    app.get(`${agentDiscoveryPath}/list`, () => [])
    app.server.on('upgrade', (request, socket, head) => {
      if (!findUpgrade(agentUpgrades, request.url ?? '')) return socket.destroy()
      this.#websockets.handleUpgrade(request, socket, head, (websocket) => {
        websocket.on('error', () => websocket.terminate())
        websocket.on('message', (message, isBinary) => websocket.send(message, { binary: isBinary }))
      })
    })
    return app
  }

  #listen(reply: FastifyReply): void {
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'application/x-ndjson' })
    reply.raw.write(`${JSON.stringify({ event: 'state', ...this.#state })}\n`)
    reply.raw.once('close', () => this.#listeners.delete(reply))
    this.#listeners.add(reply)
  }

  #tell(event: AgentEvent): void {
    for (const { raw } of this.#listeners) raw.write(`${JSON.stringify(event)}\n`)
  }
}
