import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { agentWebDriverPath } from '@berth/contract/agent/agent-protocol.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Activity } from '../activity.ts'
import type { DevToolsEndpoint } from '../browser/chromium.ts'
import { handshakeHeaders, refuse, switchingProtocols } from '../cdp/cdp-relay.ts'
import { http } from '../http.ts'
import { MapperThread } from './mapper-thread.ts'

/** After the last client the thread stays for the next one so long. */
const idleLimitMilliseconds = 30_000

interface BidiRelayOptions {
  readonly endpoint: () => Promise<DevToolsEndpoint>
  readonly activity: Activity
  readonly runFolder: string
  readonly logger: Logger
}

/** Takes the websockets of BiDi clients to the thread that translates for Chromium. */
export class BidiRelay {
  readonly #options: BidiRelayOptions
  readonly #clients = new Set<Socket>()
  #thread: Promise<MapperThread> | undefined
  #idle: NodeJS.Timeout | undefined

  constructor(options: BidiRelayOptions) {
    this.#options = options
  }

  static serves(path: string): boolean {
    return path === agentWebDriverPath
  }

  /** Answers the handshake when the browser is there, or with the reason why it is not. */
  async connect(request: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    const end = this.#options.activity.begin()
    this.#enter(client)
    client.on('close', () => {
      end()
      this.#leave(client)
    })
    client.on('error', () => client.destroy())
    try {
      while (!(await this.#open(request, client, head)));
    } catch (error) {
      refuse(client, 503, `the browser cannot be reached: ${(error as Error).message}`)
    }
  }

  /** False when the Chromium that was to be used has gone: then the next one is waited for. */
  async #open(request: IncomingMessage, client: Socket, head: Buffer): Promise<boolean> {
    const endpoint = await this.#options.endpoint()
    const { socketPath } = await this.#runningThread()
    if (client.destroyed || (await openMapper(socketPath, endpoint, request, client, head))) return true
    await endpoint.ended
    return false
  }

  #runningThread(): Promise<MapperThread> {
    if (this.#thread) return this.#thread
    const thread = MapperThread.start(this.#options.runFolder)
    this.#thread = thread
    const forget = (fault: Error | undefined) => {
      if (this.#thread === thread) this.#thread = undefined
      if (fault) this.#options.logger.warn({ err: fault }, 'the BiDi thread has ended; the next client starts it again')
    }
    thread.then(({ ended }) => ended).then(forget, forget)
    return thread
  }

  #enter(client: Socket): void {
    clearTimeout(this.#idle)
    this.#clients.add(client)
  }

  #leave(client: Socket): void {
    this.#clients.delete(client)
    if (this.#clients.size > 0) return
    this.#idle = setTimeout(() => void this.#stopThread(), idleLimitMilliseconds)
    this.#idle.unref()
  }

  async #stopThread(): Promise<void> {
    const thread = this.#thread
    this.#thread = undefined
    await thread?.then((running) => running.stop()).catch(() => {}) // It did not start: nothing to stop.
  }
}

function openMapper(
  socketPath: string,
  { port, browserPath }: DevToolsEndpoint,
  request: IncomingMessage,
  client: Socket,
  head: Buffer,
): Promise<boolean> {
  const path = `/${port}${browserPath}`
  const upstream = http.request({ socketPath, path, headers: handshakeHeaders(request.headers), agent: false })
  return new Promise((resolve, reject) => {
    upstream.on('error', reject)
    upstream.on('response', (response) => {
      response.resume()
      if (response.statusCode === 502) return resolve(false)
      refuse(client, response.statusCode ?? 400, 'the handshake is not one of a websocket')
      resolve(true)
    })
    upstream.on('upgrade', (response, mapper, mapperHead) => {
      client.write(switchingProtocols(response.headers))
      splice(client, mapper as Socket)
      if (mapperHead.length > 0) client.write(mapperHead)
      if (head.length > 0) mapper.write(head)
      resolve(true)
    })
    client.once('close', () => upstream.destroy())
    upstream.end()
  })
}

/** The end of one side is the end of the other, after what is on its way. */
function splice(client: Socket, mapper: Socket): void {
  client.setNoDelay(true)
  mapper.on('error', () => mapper.destroy())
  client.pipe(mapper)
  mapper.pipe(client)
  client.on('close', () => mapper.destroy())
  mapper.on('close', () => client.end())
}
