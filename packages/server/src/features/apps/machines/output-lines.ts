import { StringDecoder } from 'node:string_decoder'
import type { ProcessOutput } from '@berth/contract/agent/operations/process-operations.ts'

export const maxLineLength = 64 * 1024

/** Splits the output of a program into lines. A longer line is truncated. */
export class OutputLines {
  readonly #onLine: (line: string, stream: 'stdout' | 'stderr') => void
  readonly #streams = { stdout: unfinishedLine(), stderr: unfinishedLine() }

  constructor(onLine: (line: string, stream: 'stdout' | 'stderr') => void) {
    this.#onLine = onLine
  }

  take(piece: ProcessOutput): void {
    if ('event' in piece) return
    const state = this.#streams[piece.stream]
    const parts = state.decoder.write(Buffer.from(piece.data_b64, 'base64')).split('\n')
    for (const [index, part] of parts.entries()) {
      if (index > 0) this.#endLine(piece.stream)
      state.line += part.slice(0, maxLineLength - state.line.length)
    }
  }

  /** Emits the remaining output that has no line end. */
  end(): void {
    for (const stream of ['stdout', 'stderr'] as const) if (this.#streams[stream].line !== '') this.#endLine(stream)
  }

  #endLine(stream: 'stdout' | 'stderr'): void {
    const { line } = this.#streams[stream]
    this.#streams[stream].line = ''
    this.#onLine(line.replace(/\r$/, ''), stream)
  }
}

function unfinishedLine() {
  return { decoder: new StringDecoder('utf8'), line: '' }
}
