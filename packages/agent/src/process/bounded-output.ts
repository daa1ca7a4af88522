const firstBytes = 64 * 1024

/** The first bytes of an output in one buffer: a program may write single bytes. */
export class BoundedOutput {
  readonly #limitBytes: number
  #bytes: Buffer = Buffer.alloc(0)
  #length = 0
  #isCut = false

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  /** Whether output was discarded. */
  get isCut(): boolean {
    return this.#isCut
  }

  add(bytes: Uint8Array): void {
    const end = Math.min(this.#length + bytes.length, this.#limitBytes)
    this.#isCut ||= end < this.#length + bytes.length
    if (end > this.#bytes.length) this.#grow(end)
    this.#bytes.set(bytes.subarray(0, end - this.#length), this.#length)
    this.#length = end
  }

  toString(encoding: 'base64'): string {
    return this.#bytes.toString(encoding, 0, this.#length)
  }

  #grow(neededBytes: number): void {
    const size = Math.min(Math.max(neededBytes, this.#bytes.length * 2, firstBytes), this.#limitBytes)
    const grown = Buffer.allocUnsafe(size)
    grown.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = grown
  }
}
