import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { webDriverSessionPattern } from '@berth/contract/agent/agent-protocol.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { DevToolsEndpoint } from '../browser/chromium.ts'
import { endOf, handshakeHeaders, refuse, switchingProtocols } from '../cdp/cdp-relay.ts'
import { http } from '../http/node-http.ts'
import type { Activity } from '../reporting/activity.ts'
import type { ClassicSessions } from '../webdriver/classic-sessions.ts'
import { MapperProcess } from './mapper-process.ts'

/** How long the mapper keeps running after the last client. */
const idleLimitMilliseconds = 30_000
const flushLimitMilliseconds = 2_000

interface BidiRelayOptions {
  readonly endpoint: () => Promise<DevToolsEndpoint>
  readonly activity: Activity
  /** The classic WebDriver sessions to which some clients belong. */
  readonly sessions: ClassicSessions
  readonly runFolder: string
  readonly logger: Logger
}

/** Connects the websockets of BiDi clients to the mapper process. */
export class BidiRelay {
  readonly #options: BidiRelayOptions
  readonly #clients = new Set<Socket>()
  #mapper: Promise<MapperProcess> | undefined
  #idle: NodeJS.Timeout | undefined

  constructor(options: BidiRelayOptions) {
    this.#options = options
    options.sessions.onEnd((id) => this.#mapper?.then((mapper) => mapper.endSession(id)).catch(() => {}))
  }

  /** Completes the handshake when the browser is available, or rejects it with the reason. */
  async connect(request: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    const { activity, sessions } = this.#options
    const session = sessionOf(request.url ?? '')
    if (session !== undefined && !sessions.has(session)) {
      refuse(client, 404, 'there is no such WebDriver session')
      return
    }
    const leaveSession = session === undefined ? undefined : sessions.enter(session)
    const end = activity.begin()
    this.#enter(client)
    client.on('close', () => {
      end()
      leaveSession?.()
      this.#leave(client)
    })
    client.on('error', () => client.destroy())
    try {
      while (!(await this.#open(request, client, head)));
    } catch (error) {
      refuse(client, 503, `the browser cannot be reached: ${(error as Error).message}`)
    }
  }

  /** Returns false if the Chromium or the mapper in use has just died: the caller should try the next one. */
  async #open(request: IncomingMessage, client: Socket, head: Buffer): Promise<boolean> {
    const endpoint = await this.#options.endpoint()
    const mapper = await this.#runningMapper()
    if (client.destroyed) return true
    const outcome = await openMapper(mapper.socketPath, endpoint, request, client, head)
    if (outcome === 'no browser') await endOf(endpoint, new Error('it accepts no connections'))
    if (outcome === 'no mapper') await mapper.ended
    return outcome === 'answered'
  }

  #runningMapper(): Promise<MapperProcess> {
    if (this.#mapper) return this.#mapper
    const { runFolder, sessions } = this.#options
    const mapper = MapperProcess.start(runFolder, (id) => void sessions.end(id))
    this.#mapper = mapper
    const forget = (how: string) => {
      if (this.#mapper !== mapper) return // It was stopped as idle.
      this.#mapper = undefined
      this.#options.logger.warn({ how }, 'the BiDi mapper has ended; the next client starts it again')
    }
    mapper.then(({ ended }) => ended).then(forget, ({ message }: Error) => forget(message))
    return mapper
  }

  #enter(client: Socket): void {
    clearTimeout(this.#idle)
    this.#clients.add(client)
  }

  #leave(client: Socket): void {
    this.#clients.delete(client)
    if (this.#clients.size > 0) return
    this.#idle = setTimeout(() => this.#stopMapper(), idleLimitMilliseconds)
    this.#idle.unref()
  }

  #stopMapper(): void {
    const mapper = this.#mapper
    this.#mapper = undefined
    mapper?.then((running) => running.kill()).catch(() => {}) // It did not start, so there is nothing to stop.
  }
}

function sessionOf(path: string): string | undefined {
  const [, id, command] = webDriverSessionPattern.exec(path) ?? []
  return command === undefined ? id : undefined
}

/** Errors of connecting to a dead process, before and after its socket is removed. */
const gone: readonly unknown[] = ['ECONNREFUSED', 'ECONNRESET', 'ENOENT']

function openMapper(
  socketPath: string,
  { port, browserPath }: DevToolsEndpoint,
  request: IncomingMessage,
  client: Socket,
  head: Buffer,
): Promise<'answered' | 'no browser' | 'no mapper'> {
  const session = sessionOf(request.url ?? '')
  const path = `/${port}${browserPath}${session === undefined ? '' : `?${session}`}`
  const upstream = http.request({ socketPath, path, headers: handshakeHeaders(request.headers), agent: false })
  return new Promise((resolve, reject) => {
    upstream.on('error', (error: NodeJS.ErrnoException) => {
      if (gone.includes(error.code) && !client.destroyed) resolve('no mapper')
      else reject(error)
    })
    upstream.on('response', (response) => {
      response.resume()
      if (response.statusCode === 502) return resolve('no browser')
      refuse(client, response.statusCode ?? 400, 'the request is not a websocket handshake')
      resolve('answered')
    })
    upstream.on('upgrade', (response, mapper, mapperHead) => {
      client.write(switchingProtocols(response.headers))
      splice(client, mapper as Socket)
      if (mapperHead.length > 0) client.write(mapperHead)
      if (head.length > 0) mapper.write(head)
      resolve('answered')
    })
    client.once('close', () => upstream.destroy())
    upstream.end()
  })
}

/** When one side ends, ends the other after pending data is sent. */
function splice(client: Socket, mapper: Socket): void {
  client.setNoDelay(true)
  mapper.on('error', () => mapper.destroy())
  client.pipe(mapper)
  mapper.pipe(client)
  client.on('close', () => mapper.destroy())
  mapper.on('close', () => {
    client.end()
    // Do not wait for a client that does not read its last bytes.
    setTimeout(() => client.destroy(), flushLimitMilliseconds).unref()
  })
}
