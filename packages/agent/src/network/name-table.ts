/** More than a browser uses in a day. */
const maxNames = 4_096
/** 198.18.0.0/15 as a number, and its size. */
const poolStart = 0xc612_0000
const poolSize = 0x2_0000

interface Entry {
  readonly address: string
  connections: number
}

/**
 * The addresses that represent names within the machine. When there are too many names, the least recently used one is
 * removed, and its address is reused only after all others.
 */
export class NameTable {
  /** In order of use; the most recent is last. */
  readonly #entries = new Map<string, Entry>()
  readonly #names = new Map<string, string>()
  #last = 0

  /** Undefined while every name has connections. */
  addressOf(name: string): string | undefined {
    const known = this.#use(name)
    if (known) return known.address
    if (this.#entries.size >= maxNames && !this.#makeRoom()) return undefined
    const address = this.#nextAddress()
    this.#entries.set(name, { address, connections: 0 })
    this.#names.set(address, name)
    return address
  }

  nameOf(address: string): string | undefined {
    return this.#names.get(address)
  }

  static isOfPool(address: string): boolean {
    return /^198\.1[89]\./.test(address)
  }

  /** Keeps the name until the returned function is called. */
  hold(name: string): () => void {
    const entry = this.#use(name)
    if (!entry) return () => {}
    entry.connections += 1
    return () => {
      entry.connections -= 1
    }
  }

  #use(name: string): Entry | undefined {
    const entry = this.#entries.get(name)
    if (!entry) return undefined
    this.#entries.delete(name)
    this.#entries.set(name, entry)
    return entry
  }

  #makeRoom(): boolean {
    for (const [name, { address, connections }] of this.#entries) {
      if (connections > 0) continue
      this.#entries.delete(name)
      this.#names.delete(address)
      return true
    }
    return false
  }

  #nextAddress(): string {
    for (;;) {
      this.#last = (this.#last % (poolSize - 2)) + 1 // Skips the first and the last address of the pool.
      const number = poolStart + this.#last
      const address = [24, 16, 8, 0].map((shift) => (number >>> shift) & 0xff).join('.')
      if (!this.#names.has(address)) return address
    }
  }
}
