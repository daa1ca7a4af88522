import type { ProcessOutput } from '@berth/contract/agent/operations/process-operations.ts'
import { Changes } from '@berth/runtime/async/changes.ts'
import type { OutputName } from './program.ts'

interface Chunk {
  readonly stream: OutputName
  readonly bytes: Buffer
}

interface OutputQueueOptions {
  /** What may wait for a reader; more makes the program wait. */
  readonly limitBytes: number
  readonly onFull: () => void
  readonly onRoom: () => void
}

/**
 * What a program wrote and nobody has taken yet. Each chunk goes to one reader; the exit code, which comes behind the last
 * chunk, to every one.
 */
export class OutputQueue {
  readonly #options: OutputQueueOptions
  readonly #chunks: Chunk[] = []
  #bytes = 0
  #exitCode: number | undefined
  readonly #changes = new Changes()

  constructor(options: OutputQueueOptions) {
    this.#options = options
  }

  add(stream: OutputName, bytes: Buffer): void {
    const last = this.#chunks.at(-1)
    // A program that writes byte by byte would fill the memory with the frames around them.
    if (last?.stream === stream && last.bytes.length + bytes.length <= maxChunkBytes) {
      this.#chunks[this.#chunks.length - 1] = { stream, bytes: Buffer.concat([last.bytes, bytes]) }
    } else this.#chunks.push({ stream, bytes })
    this.#bytes += bytes.length
    if (this.#bytes >= this.#options.limitBytes) this.#options.onFull()
    this.#changes.notify()
  }

  end(exitCode: number): void {
    this.#exitCode = exitCode
    this.#changes.notify()
  }

  /** Everything from here on. A reader who leaves takes nothing more, and the next one goes on where it was. */
  async *read(signal: AbortSignal): AsyncGenerator<ProcessOutput> {
    while (!signal.aborted) {
      const chunk = this.#take()
      if (chunk) yield { stream: chunk.stream, data_b64: chunk.bytes.toString('base64') }
      else if (this.#exitCode !== undefined) return yield { event: 'exit', exit_code: this.#exitCode }
      else await this.#changes.next(signal)
    }
  }

  #take(): Chunk | undefined {
    const chunk = this.#chunks.shift()
    if (!chunk) return undefined
    const wasFull = this.#bytes >= this.#options.limitBytes
    this.#bytes -= chunk.bytes.length
    if (wasFull && this.#bytes < this.#options.limitBytes) this.#options.onRoom()
    return chunk
  }
}

const maxChunkBytes = 4096
