import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { FrameEnds } from './frame-ends.ts'

const flushLimitMilliseconds = 2_000
/** Service restart: clients connect again. */
const restartCode = 1012
const restartReason = 'the server restarts'

interface SpliceOptions {
  readonly client: Duplex
  readonly upstream: Duplex
  /** Whether the answer to the handshake comes from there too. */
  readonly hasHead?: boolean
  /** What upstream has sent behind its handshake, and the client has been given. */
  readonly sent?: Buffer
  readonly onEnd: () => void
}

/** A WebSocket whose bytes are copied both ways. Backpressure slows a fast side down to a slow one. */
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
      // What was said last still goes out, but a client that does not read it is not waited for.
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

  /** Tells the client that it has to connect again, as soon as the frame that it is being sent has ended. */
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
    // Its answer is read, or its end would not be.
    this.#client.resume()
    this.#upstream.destroy()
  }
}
