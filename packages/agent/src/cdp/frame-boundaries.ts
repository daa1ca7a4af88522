import { headerLengthBeforeMask, payloadLength } from './frame-header.ts'

const maxHeaderBytes = 10 // Servers do not mask.

/**
 * Tracks the frames of a server's websocket without reading their payload, and finds the boundaries between them: the
 * only places where our own frames may be inserted (RFC 6455 §5.2).
 */
export class FrameBoundaries {
  #header = Buffer.alloc(0)
  #payloadLeft = 0

  /** Whether all data so far consists of complete frames. */
  get isAtBoundary(): boolean {
    return this.#payloadLeft === 0 && this.#header.length === 0
  }

  /** Takes the next bytes and returns the offset of the last boundary in them, or -1 if there is none. */
  advance(chunk: Buffer): number {
    let offset = 0
    let lastBoundary = this.isAtBoundary ? 0 : -1
    while (offset < chunk.length) {
      if (this.#payloadLeft > 0) {
        const taken = Math.min(this.#payloadLeft, chunk.length - offset)
        this.#payloadLeft -= taken
        offset += taken
      } else {
        offset = this.#readHeader(chunk, offset)
      }
      if (this.isAtBoundary) lastBoundary = offset
    }
    return lastBoundary
  }

  /** Reads as much of a header as is available and returns the offset behind it. */
  #readHeader(chunk: Buffer, offset: number): number {
    const known = this.#header.length
    const bytes =
      known === 0
        ? chunk.subarray(offset, offset + maxHeaderBytes)
        : Buffer.concat([this.#header, chunk.subarray(offset, offset + maxHeaderBytes - known)])
    const length = headerLengthBeforeMask(bytes)
    if (length === undefined || bytes.length < length) {
      this.#header = Buffer.from(bytes) // Copied, because the chunk's memory belongs to the socket.
      return chunk.length
    }
    this.#header = Buffer.alloc(0)
    this.#payloadLeft = payloadLength(bytes)
    return offset + length - known
  }
}
