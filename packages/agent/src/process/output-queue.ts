import type { ProcessOutput } from '@berth/contract/agent/operations/process-operations.ts'
import { Changes } from '@berth/runtime/async/changes.ts'
import type { OutputName } from './program.ts'

interface Chunk {
  readonly stream: OutputName
  readonly bytes: Buffer
}

interface OutputQueueOptions {
  /** How much may wait for a reader; beyond that the program is paused. */
  readonly limitBytes: number
  readonly onFull: () => void
  readonly onRoom: () => void
}

/**
 * Output of a program that nobody has read yet. Each chunk goes to one reader; the exit code after the last chunk goes
 * to all.
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
    // Combined, because frames around single bytes would fill the memory.
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

  /** All output from here on. When a reader leaves, the next one continues at the same place. */
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
