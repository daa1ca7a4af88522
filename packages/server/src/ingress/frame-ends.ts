const sixteenBits = 126
const sixtyFourBits = 127
const endOfHead = Buffer.from('\r\n\r\n')

/**
 * Tracks the frames that a server sends on a WebSocket, which are not masked: another frame can be inserted between two
 * frames. With `hasHead`, the response to the handshake comes first.
 */
export class FrameEnds {
  #head: number[] = []
  #leftBytes = 0
  /** How much of the end of the response headers has matched. Undefined after them. */
  #headMatch: number | undefined

  constructor({ hasHead = false } = {}) {
    this.#headMatch = hasHead ? 0 : undefined
  }

  /** Whether the bytes so far end at the end of a frame. */
  get isBetween(): boolean {
    return this.#leftBytes === 0 && this.#head.length === 0 && this.#headMatch === undefined
  }

  take(chunk: Buffer): void {
    for (let offset = 0; offset < chunk.length; ) offset += this.takeOne(chunk.subarray(offset))
  }

  /** Consumes bytes up to the end of the current frame, or all of them, and returns their number. */
  takeOne(chunk: Buffer): number {
    let index = 0
    while (index < chunk.length) {
      if (this.#headMatch !== undefined) this.#takeHead(chunk[index++] as number)
      else if (this.#leftBytes > 0) {
        const taken = Math.min(this.#leftBytes, chunk.length - index)
        this.#leftBytes -= taken
        index += taken
      } else this.#takeFrameHead(chunk[index++] as number)
      if (this.isBetween) break
    }
    return index
  }

  #takeHead(byte: number): void {
    const matched = this.#headMatch ?? 0
    const next = byte === endOfHead[matched] ? matched + 1 : byte === endOfHead[0] ? 1 : 0
    this.#headMatch = next === endOfHead.length ? undefined : next
  }

  #takeFrameHead(byte: number): void {
    this.#head.push(byte)
    const short = (this.#head[1] ?? 0) & 0x7f
    const length = short === sixtyFourBits ? 10 : short === sixteenBits ? 4 : 2
    if (this.#head.length < length) return
    const size = this.#head.slice(2)
    this.#leftBytes = size.length === 0 ? short : size.reduce((sum, part) => sum * 256 + part, 0)
    this.#head = []
  }
}
