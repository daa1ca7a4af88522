import type { Socket } from 'node:net'
import { ClientFrames } from './client-frames.ts'
import { type CommandTap, type DisconnectReason, maxTappedBytes } from './command-tap.ts'
import { FrameBoundaries } from './frame-boundaries.ts'
import { closeCodes, closeEcho, closeFrame, pingFrame, pongFrame, textFrame } from './server-frames.ts'

const flushLimitMilliseconds = 2_000

export interface KeepAlive {
  /** A client that is silent for this long is pinged, and has the same time again to respond. */
  readonly silenceLimitMilliseconds: number
  readonly checkIntervalMilliseconds: number
}

const usualKeepAlive: KeepAlive = { silenceLimitMilliseconds: 30_000, checkIntervalMilliseconds: 10_000 }

/**
 * One client spliced to Chromium's DevTools server. Bytes pass through unchanged, but the agent answers control frames,
 * keeps `Browser.close` from the shared browser, and inserts its own frames between those of Chromium.
 */
export class CdpConnection {
  readonly #client: Socket
  readonly #chromium: Socket
  readonly #frames: ClientFrames
  readonly #boundaries = new FrameBoundaries()
  readonly #check: NodeJS.Timeout
  readonly #prepare: Prepare
  #usable: Promise<unknown> | undefined
  readonly #silenceLimitMilliseconds: number
  readonly #tap: CommandTap
  readonly #hasBrowserEnded: () => Promise<boolean>
  /** Our frames that wait for a frame boundary. */
  #waiting: Buffer[] = []
  #endsAfterWaiting = false
  #isReported = false
  #lastTrafficAt = performance.now()
  #pingedAt: number | undefined

  /** `prepare` may do work before a command is passed on; its promise never rejects. */
  constructor(client: Socket, chromium: Socket, options: ConnectionOptions) {
    const { usable, prepare, tap, hasEnded, keepAlive = usualKeepAlive } = options
    this.#client = client
    this.#prepare = prepare
    this.#waitUntil(usable)
    this.#tap = tap
    this.#hasBrowserEnded = hasEnded
    this.#silenceLimitMilliseconds = keepAlive.silenceLimitMilliseconds
    this.#chromium = chromium
    this.#frames = new ClientFrames({
      forward: (bytes) => this.#toChromium(bytes),
      intercept: (message) => this.#intercept(message),
      delayLong: () => this.#usable && this.#pauseUntil(this.#usable),
      beginMessage: () => {
        tap.countMessage()
        return tap.reads ? maxTappedBytes : 0
      },
      inspect: (message) => tap.take(message),
      ping: (payload) => this.#answerPing(payload),
      close: (payload) => this.#endWith(closeEcho(payload)),
      malformed: () => this.#cancel(closeCodes.protocolError),
    })
    this.#check = setInterval(() => this.#checkAlive(), keepAlive.checkIntervalMilliseconds)
    this.#check.unref()
    this.#splice()
  }

  #waitUntil(usable: Promise<unknown> | undefined): void {
    this.#usable = usable?.then(
      () => {
        this.#usable = undefined
      },
      () => this.#cancel(closeCodes.goingAway),
    )
  }

  #splice(): void {
    const [client, chromium] = [this.#client, this.#chromium]
    for (const socket of [client, chromium]) {
      socket.setNoDelay(true)
      socket.on('error', () => socket.destroy())
    }
    client.on('data', (chunk: Buffer) => {
      this.#noteTraffic()
      this.#frames.read(chunk)
    })
    chromium.on('data', (chunk: Buffer) => this.#toClient(chunk))
    client.on('drain', () => {
      this.#noteTraffic()
      chromium.resume()
      client.resume()
    })
    chromium.on('drain', () => client.resume())
    client.on('end', () => this.#end('client'))
    chromium.on('end', () => this.#end('chromium'))
    client.on('close', () => {
      clearInterval(this.#check)
      chromium.destroy()
      this.#report('client')
    })
    chromium.on('close', () => this.#end('chromium'))
  }

  #toChromium(bytes: Buffer): void {
    if (!this.#chromium.write(bytes)) this.#client.pause()
  }

  #toClient(chunk: Buffer): void {
    if (this.#endsAfterWaiting && this.#waiting.length === 0) return // Nothing may follow a close frame.
    const boundary = this.#boundaries.advance(chunk)
    if (this.#waiting.length === 0 || boundary === -1) {
      this.#write(chunk)
      return
    }
    this.#write(chunk.subarray(0, boundary))
    this.#writeWaiting()
    if (!this.#endsAfterWaiting) this.#write(chunk.subarray(boundary))
  }

  #write(bytes: Buffer): void {
    if (bytes.length > 0 && !this.#client.write(bytes)) this.#chromium.pause()
  }

  /** Sends a frame of ours as soon as no frame of Chromium is incomplete. */
  #inject(frame: Buffer): void {
    if (this.#endsAfterWaiting) return
    this.#waiting.push(frame)
    if (this.#boundaries.isAtBoundary) this.#writeWaiting()
  }

  /** Reading a client that pings without reading the pongs pauses, so that the pongs do not pile up here. */
  #answerPing(payload: Buffer): void {
    this.#inject(pongFrame(payload))
    if (this.#waiting.length > 0 || this.#client.writableNeedDrain) this.#client.pause()
  }

  #writeWaiting(): void {
    this.#write(Buffer.concat(this.#waiting))
    this.#waiting = []
    this.#client.resume()
    if (this.#endsAfterWaiting) this.#end('client')
  }

  /** Sends this close frame and ends. */
  #endWith(frame: Buffer): void {
    this.#inject(frame)
    this.#endsAfterWaiting = true
    if (this.#waiting.length === 0) this.#end('client')
    else setTimeout(() => this.#client.destroy(), flushLimitMilliseconds).unref()
  }

  /** Called when the session ends or no longer belongs to this client. */
  cancel(): void {
    this.#cancel(closeCodes.goingAway)
  }

  #cancel(code: number): void {
    this.#report('agent')
    this.#endWith(closeFrame(code))
  }

  #end(endedBy: EndedBy): void {
    this.#report(endedBy)
    this.#chromium.destroy()
    this.#client.end()
    // Do not wait for a client that does not read its last bytes.
    setTimeout(() => this.#client.destroy(), flushLimitMilliseconds).unref()
  }

  /** Reports the first cause of the end. */
  #report(endedBy: EndedBy): void {
    if (this.#isReported) return
    this.#isReported = true
    if (endedBy !== 'chromium') {
      this.#tap.end(endedBy === 'client' ? 'client_close' : 'context_cancelled')
      return
    }
    const reasonOf = (hasEnded: boolean): DisconnectReason => (hasEnded ? 'upstream_changed' : 'upstream_error')
    void this.#hasBrowserEnded().then((hasEnded) => this.#tap.end(reasonOf(hasEnded)))
  }

  /** `Browser.close` from one client must not close the shared browser: it ends that client's connection. */
  #intercept(message: string): boolean | Promise<boolean> {
    // Only the command that clients begin with involves no page.
    if (this.#usable && parseCommand(message)?.method !== 'Browser.getVersion')
      return this.#pauseUntil(this.#usable).then(() => this.#intercept(message))
    if (!message.includes('Browser.')) return false
    const command = parseCommand(message)
    const prepared = command && this.#prepare(command)
    if (prepared) return this.#pauseUntil(prepared).then(() => false)
    if (command?.method !== 'Browser.close') return false
    const { id, sessionId } = command
    this.#inject(textFrame(JSON.stringify({ id, result: {}, sessionId })))
    this.#endWith(closeFrame(closeCodes.normal))
    return true
  }

  async #pauseUntil(done: Promise<unknown>): Promise<void> {
    this.#client.pause() // Stops reading, so that further data stays with the client.
    try {
      await done
    } finally {
      this.#client.resume()
    }
  }

  #noteTraffic(): void {
    this.#lastTrafficAt = performance.now()
    this.#pingedAt = undefined
  }

  #checkAlive(): void {
    const now = performance.now()
    if (this.#pingedAt !== undefined) {
      if (now - this.#pingedAt < this.#silenceLimitMilliseconds) return
      this.#report('agent')
      this.#client.destroy()
    } else if (now - this.#lastTrafficAt >= this.#silenceLimitMilliseconds) {
      this.#pingedAt = now
      this.#inject(pingFrame())
    }
  }
}

type EndedBy = 'client' | 'chromium' | 'agent'

interface ConnectionOptions {
  /** Until it resolves, only a request for the version is passed on. If it rejects, the connection ends. */
  readonly usable?: Promise<unknown> | undefined
  readonly prepare: Prepare
  readonly tap: CommandTap
  /** Whether the Chromium of the connection has ended or is about to end. */
  readonly hasEnded: () => Promise<boolean>
  readonly keepAlive?: KeepAlive
}

export interface Command {
  readonly id?: unknown
  readonly method?: unknown
  readonly params?: unknown
  readonly sessionId?: unknown
}

/** Undefined if there is nothing to do. */
export type Prepare = (command: Command) => Promise<void> | undefined

function parseCommand(message: string): Command | undefined {
  try {
    return JSON.parse(message)
  } catch {
    return undefined // Chromium will report the error to the client.
  }
}
