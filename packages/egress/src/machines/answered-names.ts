const maxAddresses = 4_096
const maxNames = 32

/**
 * Which names a machine was told which addresses for: a connection to such an address is one to its name, also when the
 * settings have changed meanwhile. What was not asked for longest is forgotten.
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

  /** The last that was asked for comes last. */
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
