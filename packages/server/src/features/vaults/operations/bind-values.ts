import { BerthError } from '@berth/contract/errors.ts'

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

/** Returns the input with the nulls at the pointers replaced by the texts. */
export function bindValues(
  input: Readonly<Record<string, unknown>>,
  pointers: readonly string[],
  texts: readonly string[],
): Record<string, unknown> {
  const bound = structuredClone(input)
  for (const [index, pointer] of pointers.entries()) {
    const steps = pointer.split('/').slice(1).map(unescapeStep)
    const last = steps.pop() as string
    const parent = steps.reduce<unknown>(memberOf, bound)
    if (memberOf(parent, last) !== null) {
      const reason = `bindings.${index}.input_path: must point to a null in input that no other binding uses.`
      throw new BerthError('invalid_input', { reason })
    }
    const container = parent as Record<string, unknown>
    container[last] = texts[index]
  }
  return bound
}

function unescapeStep(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~')
}

function memberOf(container: unknown, name: string): unknown {
  if (typeof container !== 'object' || container === null || !Object.hasOwn(container, name)) return undefined
  return (container as Record<string, unknown>)[name]
}

const hidden = '[hidden]'

/** Removes the texts from the response of a page: the page received them, but its caller must not. */
export function withoutTexts(answer: unknown, texts: readonly string[]): unknown {
  const spellings = texts
    .flatMap((text) => [text, encodeURIComponent(text), JSON.stringify(text).slice(1, -1)])
    .filter((text) => text !== '')
    .toSorted((one, other) => other.length - one.length)
  const clean = (text: string) => spellings.reduce((left, spelling) => left.replaceAll(spelling, hidden), text)
  return cleaned(answer as Json, clean)
}

function cleaned(value: Json, clean: (text: string) => string): Json {
  if (typeof value === 'string') return clean(value)
  if (typeof value === 'number') {
    const text = String(value)
    return clean(text) === text ? value : hidden
  }
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item: Json) => cleaned(item, clean))
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [clean(name), cleaned(member, clean)]))
}
