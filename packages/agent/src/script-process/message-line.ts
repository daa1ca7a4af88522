import type { Duplex } from 'node:stream'

interface MessageLineOptions<Received> {
  readonly onMessage: (message: Received) => void
  /** The data is malformed or too long; nothing more is read. */
  readonly onCorruption: (reason: string) => void
  readonly maxBytes: number
}

const lineEnd = 10

/** Messages between the agent and a program that runs a caller's code: each is one line of JSON. */
export class MessageLine<Sent extends object, Received extends object> {
  readonly #stream: Duplex
  readonly #options: MessageLineOptions<Received>
  #unfinished: Buffer[] = []
  #unfinishedBytes = 0
  #isCorrupt = false

  constructor(stream: Duplex, options: MessageLineOptions<Received>) {
    this.#stream = stream
    this.#options = options
    stream.on('error', () => {}) // The other side has ended; its exit is reported elsewhere.
    stream.on('data', (chunk: Buffer) => this.#read(chunk))
  }

  /** Calls back when the message has left this process. */
  send(message: Sent, sent?: () => void): void {
    this.#stream.write(`${JSON.stringify(message)}\n`, sent)
  }

  #read(chunk: Buffer): void {
    let start = 0
    for (let end = chunk.indexOf(lineEnd); end !== -1 && !this.#isCorrupt; end = chunk.indexOf(lineEnd, start)) {
      this.#keep(chunk.subarray(start, end))
      start = end + 1
      if (!this.#isCorrupt) this.#take()
    }
    if (!this.#isCorrupt) this.#keep(chunk.subarray(start))
  }

  #keep(bytes: Buffer): void {
    this.#unfinished.push(bytes)
    this.#unfinishedBytes += bytes.length
    if (this.#unfinishedBytes > this.#options.maxBytes)
      this.#fail(`a message is longer than ${this.#options.maxBytes} bytes`)
  }

  #take(): void {
    const message = parsed(Buffer.concat(this.#unfinished).toString('utf8'))
    this.#unfinished = []
    this.#unfinishedBytes = 0
    if (typeof message === 'object' && message !== null) this.#options.onMessage(message as Received)
    else this.#fail('a message is not a JSON object')
  }

  #fail(reason: string): void {
    this.#isCorrupt = true
    this.#unfinished = []
    this.#options.onCorruption(reason)
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
