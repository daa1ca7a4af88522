import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type RawData, type WebSocket, WebSocketServer } from 'ws'

/** A viewer that is silent for this long is pinged, and has the same time again to respond. */
const silenceLimitMilliseconds = 30_000
const checkIntervalMilliseconds = 10_000
const flushLimitMilliseconds = 2_000
/** How much data may wait for a slow viewer before its source is paused. */
const maxWaitingBytes = 256 * 1024
const maxMessageBytes = 1024 * 1024

export const closeCodes = { goingAway: 1001, protocolError: 1002, refused: 1008 } as const

const server = new WebSocketServer({
  noServer: true,
  perMessageDeflate: false,
  maxPayload: maxMessageBytes,
  // Pongs for a viewer that does not read them must not pile up.
  autoPong: false,
})

/** The WebSocket of one viewer. Memory is bounded in both directions, and a vanished viewer is detected. */
export class ViewerSocket {
  readonly #socket: WebSocket
  readonly #check: NodeJS.Timeout
  #lastTrafficAt = performance.now()
  #isAsked = false

  private constructor(socket: WebSocket) {
    this.#socket = socket
    this.#check = setInterval(() => this.#checkAlive(), checkIntervalMilliseconds).unref()
    socket.on('error', () => socket.terminate())
    socket.on('close', () => clearInterval(this.#check))
    socket.on('pong', () => this.#noteTraffic())
    socket.on('ping', (payload) => {
      this.#noteTraffic()
      if (!this.isBehind) socket.pong(payload)
    })
  }

  static accept(request: IncomingMessage, socket: Socket, head: Buffer): Promise<ViewerSocket> {
    return new Promise((resolve, reject) => {
      socket.once('close', () => reject(new Error('the viewer has disconnected')))
      server.handleUpgrade(request, socket, head, (accepted) => {
        socket.setNoDelay(true)
        resolve(new ViewerSocket(accepted))
      })
    })
  }

  get isBehind(): boolean {
    return this.#socket.bufferedAmount > maxWaitingBytes
  }

  /** The promise of `take` delays the next message. Messages that have arrived already wait, and reading pauses. */
  onMessage(take: (data: Buffer, isBinary: boolean) => Promise<unknown> | undefined): void {
    const socket = this.#socket
    const waiting: (readonly [data: Buffer, isBinary: boolean])[] = []
    let isTaking = false
    const takeNext = (): void => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const taken = take(...next)
        if (!taken) continue
        isTaking = true
        socket.pause()
        taken.then(goOn, goOn)
        return
      }
    }
    const goOn = () => {
      isTaking = false
      socket.resume()
      takeNext()
    }
    socket.on('message', (data: RawData, isBinary) => {
      this.#noteTraffic()
      waiting.push([data as Buffer, isBinary])
      if (!isTaking) takeNext()
    })
  }

  /** `sent` is called when the bytes are written. */
  send(bytes: Uint8Array, sent?: () => void): void {
    this.#socket.send(bytes, { binary: true }, (error) => {
      if (error) return
      this.#noteTraffic()
      sent?.()
    })
  }

  onClose(closed: () => void): void {
    this.#socket.once('close', closed)
  }

  /** Does not wait for a viewer that does not read its last bytes. */
  close(code: number, reason: string): void {
    this.#socket.close(code, reason)
    const late = setTimeout(() => this.#socket.terminate(), flushLimitMilliseconds)
    this.#socket.once('close', () => clearTimeout(late))
  }

  #noteTraffic(): void {
    this.#lastTrafficAt = performance.now()
    this.#isAsked = false
  }

  #checkAlive(): void {
    const silence = performance.now() - this.#lastTrafficAt
    if (silence >= 2 * silenceLimitMilliseconds) this.#socket.terminate()
    else if (silence >= silenceLimitMilliseconds && !this.#isAsked) {
      this.#isAsked = true
      this.#socket.ping()
    }
  }
}
