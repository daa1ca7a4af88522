import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { FrameEnds } from './frame-ends.ts'

const flushLimitMilliseconds = 2_000
/** Service restart: clients should reconnect. */
const restartCode = 1012
const restartReason = 'the server restarts'

interface SpliceOptions {
  readonly client: Duplex
  readonly upstream: Duplex
  /** Whether upstream also sends the response to the handshake. */
  readonly hasHead?: boolean
  /** The data that upstream sent after its handshake, and that the client has already received. */
  readonly sent?: Buffer
  readonly onEnd: () => void
}

/** A WebSocket whose bytes are copied in both directions. Backpressure slows a fast side down to a slow one. */
export class WebSocketSplice {
  readonly #client: Duplex
  readonly #upstream: Duplex
  readonly #frames: FrameEnds
  #isRestarting = false

  constructor({ client, upstream, hasHead = false, sent, onEnd }: SpliceOptions) {
    this.#client = client
    this.#upstream = upstream
    this.#frames = new FrameEnds({ hasHead })
    if (sent) this.#frames.take(sent)
    const tcp = client as Socket
    tcp.setNoDelay(true)
    tcp.setTimeout(0)
    // A half-closed WebSocket has nothing left to send: the end of either side, clean or not, ends the other.
    client.once('close', () => {
      onEnd()
      this.close()
    })
    upstream.once('close', () => {
      // The last data is still sent, but a client that does not read it is not waited for.
      if (!this.#isRestarting) client.end(() => this.close())
      setTimeout(() => this.close(), flushLimitMilliseconds).unref()
    })
    upstream.on('data', (chunk: Buffer) => this.#take(chunk))
    client.pipe(upstream)
    upstream.pipe(client)
    if (upstream.destroyed) this.close()
  }

  close(): void {
    this.#client.destroy()
    this.#upstream.destroy()
  }

  /** Tells the client to reconnect, as soon as the current frame has ended. */
  restart(): void {
    if (this.#isRestarting || this.#client.destroyed) return
    this.#isRestarting = true
    setTimeout(() => this.close(), flushLimitMilliseconds).unref()
    this.#upstream.unpipe(this.#client)
    if (this.#frames.isBetween) this.#sendClose()
    else this.#upstream.resume()
  }

  #take(chunk: Buffer): void {
    if (!this.#isRestarting) {
      this.#frames.take(chunk)
      return
    }
    if (this.#client.writableEnded) return
    this.#client.write(chunk.subarray(0, this.#frames.takeOne(chunk)))
    if (this.#frames.isBetween) this.#sendClose()
  }

  #sendClose(): void {
    const payload = Buffer.concat([Buffer.from([restartCode >> 8, restartCode & 0xff]), Buffer.from(restartReason)])
    this.#client.end(Buffer.concat([Buffer.from([0x88, payload.length]), payload]))
    this.#client.unpipe(this.#upstream)
    // Its response must be read, otherwise its end would not be noticed.
    this.#client.resume()
    this.#upstream.destroy()
  }
}
