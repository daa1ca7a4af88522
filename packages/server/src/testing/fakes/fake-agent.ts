import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import {
  type AgentConfig,
  type AgentEvent,
  type AgentState,
  type AgentTelemetryRecord,
  acknowledgeAgentEvents,
  acknowledgeAgentTelemetry,
  answerCaptcha,
  type BrowserConfiguration,
  type CaptchaOutcome,
  configureAgent,
  endClients,
  endRecording,
  type FetchPageReply,
  type FetchPageRequest,
  fetchPage,
  followAgentEvents,
  followAgentState,
  followAgentTelemetry,
  getAgentState,
  type RecordRequest,
  recordScreen,
  type ServiceName,
  stopAgent,
  type TelemetryCapture,
  takeThumbnail,
} from '@berth/contract/agent/agent-endpoints.ts'
import {
  agentContractVersion,
  agentDiscoveryPath,
  agentExtensionsPath,
  agentOperationsPath,
  agentProfilePath,
  agentWebDriverPath,
} from '@berth/contract/agent/agent-protocol.ts'
import { agentUpgrades } from '@berth/contract/agent/agent-upgrades.ts'
import {
  type FillFormFieldsReply,
  type FillFormFieldsRequest,
  type FindFormFieldsReply,
  type FindFormFieldsRequest,
  fillFormFields,
  findFormFields,
} from '@berth/contract/agent/login/form-fill-endpoints.ts'
import {
  checkLogin,
  chooseLogin,
  observeLogin,
  openLogin,
  submitLogin,
} from '@berth/contract/agent/login/login-endpoints.ts'
import { makeSealingKey, type SealingKey } from '@berth/contract/agent/login/sealing-endpoints.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { TelemetryEvent } from '@berth/contract/telemetry/telemetry-event.ts'
import { findUpgrade } from '@berth/contract/upgrade.ts'
import { Changes } from '@berth/runtime/async/changes.ts'
import { replyWithErrors } from '@berth/runtime/http/error-reply.ts'
import { mount, mountStream } from '@berth/runtime/http/mount.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { SealingKeys } from '@berth/runtime/sealing/sealing-keys.ts'
import { SequencedLog } from '@berth/runtime/stream/sequenced-log.ts'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { WebSocketServer } from 'ws'
import { FakeLogin } from './fake-login.ts'

const browserPath = '/devtools/browser/fake'

/** A fill request with decrypted values. */
interface FakeFill extends Omit<FillFormFieldsRequest, 'sealed_values'> {
  readonly values: readonly string[]
}

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
  /** All received configurations, newest last. */
  readonly configurations: BrowserConfiguration[] = []
  /** The received telemetry settings, newest last. */
  readonly captures: (TelemetryCapture | null)[] = []
  readonly captchaAnswers: { readonly task_id: string; readonly outcome: CaptchaOutcome }[] = []
  /** The requests to fetch pages. */
  readonly fetched: FetchPageRequest[] = []
  fetchPage: (request: FetchPageRequest) => Promise<FetchPageReply> = async () => {
    throw new BerthError('curl_failed', { reason: 'ERR_NAME_NOT_RESOLVED' })
  }
  /** The number of taken thumbnails. */
  thumbnails = 0
  beforeThumbnail: () => Promise<void> = async () => {}
  /** Finds the elements of forms, because there is no page. */
  findFormFields: (request: FindFormFieldsRequest) => Promise<FindFormFieldsReply> = async () => ({
    outcome: 'no_page',
  })
  /** The received values for the elements. */
  readonly filled: FakeFill[] = []
  readonly #sealing = new SealingKeys()
  makeSealingKey: () => Promise<SealingKey> = () => this.#sealing.make()
  fillFormFields: (request: FakeFill) => Promise<FillFormFieldsReply> = async ({ values }) => ({
    status: 'completed',
    fields: values.map((_value, index) => ({ index, status: 'filled' })),
  })
  /** The site on which it logs in. */
  login = new FakeLogin({ first: 'nothing', pages: { nothing: { state: 'not_found' } } })
  /** Sends a recording of the screen. */
  record: (request: RecordRequest) => Readable = () => {
    throw new BerthError('replay_start_failed', { reason: 'the fake agent has no recorder' })
  }
  /** Ends the recording. */
  onEndRecording: (id: string) => void = () => {}
  /** Called when the server closes the connections of clients. */
  onEndClients: () => void = () => {}
  /** Called for each change of the viewport. */
  onResize: () => Promise<void> | void = () => {}
  readonly #app: FastifyInstance
  readonly #websockets = new WebSocketServer({ noServer: true })
  readonly events = new SequencedLog<AgentEvent>({ maxEvents: 100, maxLength: 100_000, maxEventLength: 10_000 })
  telemetry = new SequencedLog<TelemetryEvent>({ maxEvents: 20_000, maxLength: 8_000_000, maxEventLength: 500_000 })
  readonly #changes = new Changes()
  /** The open streams. */
  readonly #streams = new Set<FastifyRequest>()
  #state: AgentState = { contract_version: agentContractVersion, state: 'ready', idle_since: null }
  /** The loaded states as text, each with the requested tabs. */
  readonly loaded: { readonly state: string; readonly tabs: string | null }[] = []
  /** Runs after a state has arrived and before the response. */
  onProfile: () => Promise<void> = async () => {}
  /** How often the previous state was restored. */
  takenBack = 0
  /** Whether it rejects the next states. */
  refusesProfiles = false
  /** Returns the state of its browser. */
  profile: (reply: FastifyReply) => unknown = (reply) => reply.send('the state of the fake browser')
  #thawed = Promise.withResolvers<void>()
  /** Whether its driver has frozen its machine. Different from an agent that does not respond. */
  isFrozen = false

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
    this.#changes.notify()
  }

  /** Reports that a program ended and was restarted. */
  crash(service: ServiceName, detail: string, at = Date.now()): void {
    this.events.append({ event: 'service_crashed', service, detail, at })
  }

  /** Cuts off every stream. The agent keeps running. */
  cutStreams(): void {
    for (const { raw } of this.#streams) raw.destroy()
  }

  /** Ends every stream after its last event. */
  endStreams(): void {
    for (const { raw } of this.#streams) raw.socket.end()
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
    const app = fastify({ bodyLimit: 8 * 1024 * 1024 })
    replyWithErrors(app, createLogger({ name: 'fake-agent', level: 'silent', json: true }))
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
    mount(app, endClients, () => this.onEndClients())
    mount(app, answerCaptcha, ({ body }) => void this.captchaAnswers.push(body))
    mount(app, stopAgent, ({ request }) => {
      request.raw.socket.once('close', () => this.kill())
    })
    app.post(agentExtensionsPath, () => {}) // Handled above.
    mount(app, configureAgent, async ({ body }) => {
      this.configurations.push(body)
      if (body.start_url !== undefined) this.navigations.push(body.start_url)
      if (body.telemetry !== undefined) this.captures.push(body.telemetry)
      if (!body.viewport) return
      this.viewports.push(body.viewport)
      await this.onResize()
    })
    mount(app, fetchPage, ({ body }) => {
      this.fetched.push(body)
      return this.fetchPage(body)
    })
    mount(app, takeThumbnail, async () => {
      this.thumbnails += 1
      await this.beforeThumbnail()
      return { jpeg_b64: Buffer.from(`picture ${this.thumbnails}`).toString('base64') }
    })
    mount(app, findFormFields, ({ body }) => this.findFormFields(body))
    mount(app, makeSealingKey, () => this.makeSealingKey())
    mount(app, fillFormFields, async ({ body: { sealed_values, ...rest } }) => {
      const opened = await this.#sealing.open(sealed_values)
      const fill = { ...rest, values: opened.map((json) => JSON.parse(Buffer.from(json).toString()) as string) }
      this.filled.push(fill)
      return this.fillFormFields(fill)
    })
    mount(app, openLogin, () => this.login.page())
    mount(app, observeLogin, () => this.login.page())
    mount(app, submitLogin, ({ body }) => this.login.submit(body))
    mount(app, chooseLogin, ({ body }) => this.login.choose(body.page_key, body.ref))
    mount(app, checkLogin, () => this.login.check())
    mount(app, recordScreen, ({ body }) => ({ content: this.record(body) }))
    mount(app, endRecording, ({ body }) => this.onEndRecording(body.id))
    mountStream(app, followAgentState, async ({ request, signal }) => this.#open(request, this.#states(signal)))
    mountStream(app, followAgentEvents, async ({ request, query, signal }) =>
      this.#open(request, this.events.follow(query.after, signal)),
    )
    mount(app, acknowledgeAgentEvents, ({ body }) => this.events.acknowledge(body.sequence))
    mountStream(app, followAgentTelemetry, async ({ request, query, signal }) =>
      this.#open<AgentTelemetryRecord>(request, this.telemetry.follow(query.after, signal)),
    )
    mount(app, acknowledgeAgentTelemetry, ({ body }) => this.telemetry.acknowledge(body.sequence))
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

  #open<Event>(request: FastifyRequest, events: AsyncIterable<Event>): AsyncIterable<Event> {
    this.#streams.add(request)
    request.raw.socket.once('close', () => this.#streams.delete(request))
    return events
  }

  async *#states(signal: AbortSignal): AsyncGenerator<AgentState> {
    for (let sent: AgentState | undefined; !signal.aborted; ) {
      if (sent === this.#state) await this.#changes.next(signal)
      else {
        sent = this.#state
        yield sent
      }
    }
  }
}
