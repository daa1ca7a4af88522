const maxAddresses = 4_096
const maxNames = 32

/**
 * Records which addresses a machine was given for which names. A connection to such an address counts as one to the
 * name, even after settings change. The least recently requested names are dropped first.
 */
export class AnsweredNames {
  readonly #names = new Map<string, Set<string>>()

  remember(name: string, addresses: readonly string[]): void {
    for (const address of addresses) {
      const names = this.#names.get(address) ?? new Set()
      this.#names.delete(address)
      this.#names.set(address, names)
      names.delete(name)
      names.add(name)
      dropOldest(names, maxNames)
    }
    while (this.#names.size > maxAddresses) dropOldest(this.#names, maxAddresses)
  }

  /** Moves the address to the end, so that it is dropped last. */
  namesOf(address: string): readonly string[] {
    return [...(this.#names.get(address) ?? [])]
  }
}

function dropOldest(
  entries: { size: number; keys(): Iterator<string>; delete(key: string): void },
  limit: number,
): void {
  const { value } = entries.keys().next()
  if (entries.size > limit) entries.delete(value)
}
