/** A call and its expected outcome. */
export interface CallRow {
  /** `{name}` is a value that an earlier row has saved. */
  readonly call: string
  /** Part of the message of the expected error; absent if the call should succeed. */
  readonly error: string | undefined
  /** Saves the match of the pattern in the response. */
  readonly saves: { readonly name: string; readonly pattern: RegExp } | undefined
}

/**
 * Each line is a call. `! text` is the expected error, `-> name=field` saves a field of the JSON response, and `->
 * name~pattern` saves the match of the pattern.
 */
export function callTable(text: string): readonly CallRow[] {
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [rest = '', saved] = line.split(' -> ')
      const [call = '', error] = rest.split(' ! ')
      const [, name = '', kind, found = ''] = /^(\w+)([=~])(.*)$/.exec(saved ?? '') ?? []
      const pattern = kind === '=' ? new RegExp(`"${found}": ?"([^"]+)"`) : new RegExp(found)
      return { call, error, saves: saved === undefined ? undefined : { name, pattern } }
    })
}

/** Values that rows have saved, for later rows. */
export class SavedValues {
  readonly #values: Map<string, string>

  constructor(values: Readonly<Record<string, string>>) {
    this.#values = new Map(Object.entries(values))
  }

  fill(text: string): string {
    return text.replaceAll(/\{(\w+)\}/g, (_all, name: string) => this.#values.get(name) ?? `no ${name}`)
  }

  save({ saves }: CallRow, answer: string): void {
    if (!saves) return
    const [, found] = saves.pattern.exec(answer) ?? []
    if (found === undefined) throw new Error(`${saves.name} is not in the answer: ${answer}`)
    this.#values.set(saves.name, found)
  }
}
