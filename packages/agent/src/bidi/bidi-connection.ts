import { randomUUID } from 'node:crypto'
import { BidiMapper } from 'chromium-bidi'
import { BidiParser } from 'chromium-bidi/out/Default/gen/src/bidiTab/BidiParser.js'
import type { WebSocket } from 'ws'
import { capabilitiesBesideClassic, newSessionResult, unmetBrowserName, withCapabilities } from './capabilities.ts'
import type { ClassicConnections } from './classic-connections.ts'
import { SharedBrowser } from './shared-browser.ts'

/** Reading one socket pauses while the other one has more unsent bytes. */
const maxUnsentBytes = 1024 * 1024
const pingIntervalMilliseconds = 30_000
const flushLimitMilliseconds = 2_000
const closeCodes = { normal: 1000, goingAway: 1001, internalError: 1011 } as const

interface Command {
  readonly id: number
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
}

/** The classic WebDriver session that the client belongs to. */
interface ClassicSession {
  readonly id: string
  readonly all: ClassicConnections
}

/** Ids of clients' commands are never negative. */
const joiningId = -1

type Deliver = (command: Command) => void
type BidiTransport = BidiMapper.BidiTransport
type MapperCommand = Parameters<Parameters<BidiTransport['setOnMessage']>[0]>[0]

/**
 * One BiDi client with a connection to Chromium and a mapper of its own. Its BiDi session lasts from `session.new` to
 * the end of the connection, which `session.end` and `browser.close` cause. The browser and its pages continue.
 */
export class BidiConnection {
  readonly #client: WebSocket
  readonly #chromium: WebSocket
  readonly #browser: SharedBrowser
  readonly #sessionId: string
  readonly #classic: ClassicSession | undefined
  /** Passes on commands of the session; undefined while there is none. */
  #session: Promise<Deliver> | undefined
  /** Settles when the client has joined its classic session: the mapper does not know the tabs before. */
  readonly #joined = Promise.withResolvers<void>()
  /** Id of the pending `session.new`. */
  #creation: number | undefined
  #isAlive = true

  constructor(client: WebSocket, chromium: WebSocket, classic?: ClassicSession) {
    this.#client = client
    this.#chromium = chromium
    this.#classic = classic
    this.#sessionId = classic?.id ?? randomUUID()
    const end = () => this.#end()
    this.#browser = new SharedBrowser(chromium, (message) => passOn(message, chromium, client), end)
    if (classic) {
      client.on('close', classic.all.enter(classic.id, this))
      void this.#create({ id: joiningId, method: 'session.new', params: capabilitiesBesideClassic })
    } else this.#joined.resolve()
    client.on('message', (message) => {
      this.#isAlive = true
      this.#take(String(message)).catch(() => this.#close(closeCodes.internalError, 'the browser does not answer'))
    })
    client.on('pong', () => {
      this.#isAlive = true
    })
    client.on('error', () => {}) // A close follows.
    chromium.on('error', () => {})
    const check = setInterval(() => this.#checkAlive(), pingIntervalMilliseconds)
    client.on('close', () => {
      clearInterval(check)
      this.#browser.close()
    })
    chromium.on('close', () => this.#close(closeCodes.goingAway, 'the browser has ended'))
  }

  /** The session has ended, so the client's connection ends. */
  leave(): void {
    this.#close(closeCodes.normal, 'the BiDi session has ended')
  }

  #end(): void {
    this.#classic?.all.end(this.#classic.id)
    this.leave()
  }

  async #take(text: string): Promise<void> {
    const command = parseCommand(text)
    if ('fault' in command) {
      this.#fail(command.id, 'invalid argument', command.fault)
    } else if (command.method === 'session.new') {
      await this.#begin(command)
    } else if (!this.#session) {
      this.#answerWithoutSession(command)
    } else if (command.method === 'session.end') {
      this.#answer(command.id, {})
      this.#end()
    } else {
      const deliver = await this.#session
      await this.#joined.promise
      deliver(command)
    }
  }

  #answerWithoutSession({ id, method }: Command): void {
    if (method === 'session.status') this.#answer(id, { ready: true, message: '' })
    else this.#fail(id, 'invalid session id', 'there is no session: send session.new')
  }

  async #begin({ id, method, params: asked }: Command): Promise<void> {
    const params = withCapabilities(asked)
    const name = unmetBrowserName(params)
    if (this.#session) this.#fail(id, 'session not created', 'this connection has a session already')
    else if (name !== undefined) this.#fail(id, 'session not created', `the browser is chrome, not ${name}`)
    else await this.#create({ id, method, params })
  }

  async #create(command: Command): Promise<void> {
    this.#creation = command.id
    this.#session = this.#startMapper()
    try {
      const deliver = await this.#session
      deliver(command)
    } catch {
      // Its connection to the browser is broken; the close event may still be pending.
      this.#close(closeCodes.internalError, 'the browser does not answer')
    }
  }

  async #startMapper(): Promise<Deliver> {
    let deliver: (command: MapperCommand) => unknown = () => {}
    const transport: BidiTransport = {
      setOnMessage: (handler) => {
        deliver = handler
      },
      sendMessage: (message) => this.#tell(message),
      close: () => {},
    }
    // The mapper runs here, not in a tab, so no page belongs to it.
    const ownTarget = ''
    const session = await this.#browser.createBrowserSession()
    await BidiMapper.BidiServer.createAndStart(transport, this.#browser, session, ownTarget, new BidiParser())
    return (command) => {
      if (asksForDownloads(command)) this.#browser.reportDownloads(session).catch(() => {}) // The session has ended.
      // The mapper validates the parameters and responds with the error itself.
      Promise.try(deliver, command as MapperCommand).catch(() => {})
    }
  }

  #tell(message: Parameters<BidiTransport['sendMessage']>[0]): void {
    if (!('id' in message) || message.id === null || message.id !== this.#creation) {
      this.#send(message)
      return
    }
    this.#creation = undefined
    if (this.#classic) {
      if (message.type === 'success') this.#joined.resolve()
      else this.#close(closeCodes.internalError, 'the BiDi session cannot be joined')
    } else if (message.type === 'success') {
      this.#answer(message.id, newSessionResult(this.#sessionId, message.result as never))
    } else {
      this.#session = undefined
      this.#send(message)
    }
  }

  #answer(id: number, result: object): void {
    this.#send({ type: 'success', id, result })
  }

  #fail(id: number | null, error: string, message: string): void {
    this.#send({ type: 'error', id, error, message })
  }

  #send(message: object): void {
    passOn(JSON.stringify(message), this.#client, this.#chromium)
  }

  #close(code: number, reason: string): void {
    this.#client.close(code, reason)
    // Do not wait for a client that does not respond or does not read.
    setTimeout(() => this.#client.terminate(), flushLimitMilliseconds).unref()
  }

  /** Skipped while reading is paused because Chromium is slow: the client's pongs would not be read. */
  #checkAlive(): void {
    if (this.#isAlive || this.#client.isPaused) this.#client.ping()
    else this.#client.terminate()
    this.#isAlive = false
  }
}

/** Pauses the source while its target has too much unsent data. */
function passOn(message: string, target: WebSocket, source: WebSocket): void {
  if (target.readyState !== target.OPEN) return
  target.send(message, () => {
    if (target.bufferedAmount <= maxUnsentBytes) source.resume()
  })
  if (target.bufferedAmount > maxUnsentBytes) source.pause()
}

function asksForDownloads({ method, params }: Command): boolean {
  const { events } = params
  if (method !== 'session.subscribe' || !Array.isArray(events)) return false
  return events.some((event) => event === 'browsingContext' || String(event).startsWith('browsingContext.download'))
}

function parseCommand(text: string): Command | { readonly id: number | null; readonly fault: string } {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return { id: null, fault: 'the message is not JSON' }
  }
  const { id, method, params } = Object(parsed) as Partial<Record<keyof Command, unknown>>
  if (typeof id !== 'number' || !Number.isSafeInteger(id) || id < 0)
    return { id: null, fault: 'the id is not a positive integer' }
  if (typeof method !== 'string') return { id, fault: 'the method is not a string' }
  if (typeof params !== 'object' || params === null || Array.isArray(params))
    return { id, fault: 'the params are not an object' }
  return parsed as Command
}
