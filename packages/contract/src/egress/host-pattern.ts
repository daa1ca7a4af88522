import { parseHost } from './host.ts'

/** A host name. With a leading `*.` it matches every name below it at any depth, but not the name itself. */
export interface HostPattern {
  readonly isWildcard: boolean
  /** In the spelling of `Host`: lower-case ASCII without a final dot. */
  readonly name: string
}

const wildcard = '*.'

/** Parses `example.com` or `*.example.com`. Addresses, ports, paths, schemes and other wildcards are invalid. */
export function parseHostPattern(text: string): HostPattern | undefined {
  const isWildcard = text.startsWith(wildcard)
  const host = parseHost(isWildcard ? text.slice(wildcard.length) : text)
  return host?.kind === 'name' ? { isWildcard, name: host.name } : undefined
}

export function hostPatternText({ isWildcard, name }: HostPattern): string {
  return isWildcard ? wildcard + name : name
}

export function matchesHost({ isWildcard, name }: HostPattern, host: string): boolean {
  return isWildcard ? isBelow(host, name) : host === name
}

/** Whether some host name matches both patterns. */
export function overlap(one: HostPattern, other: HostPattern): boolean {
  if (!one.isWildcard) return matchesHost(other, one.name)
  if (!other.isWildcard) return matchesHost(one, other.name)
  return one.name === other.name || isBelow(one.name, other.name) || isBelow(other.name, one.name)
}

function isBelow(host: string, name: string): boolean {
  return host.endsWith(`.${name}`)
}

/** Maps host names to values. An exact name wins over every wildcard, and a longer wildcard over a shorter one. */
export class HostPatternMap<Value> {
  readonly #exact = new Map<string, Value>()
  readonly #below = new Map<string, Value>()

  constructor(entries: Iterable<readonly [HostPattern, Value]>) {
    for (const [{ isWildcard, name }, value] of entries) (isWildcard ? this.#below : this.#exact).set(name, value)
  }

  find(host: string): Value | undefined {
    const exact = this.#exact.get(host)
    if (exact !== undefined) return exact
    for (let dot = host.indexOf('.'); dot !== -1; dot = host.indexOf('.', dot + 1)) {
      const below = this.#below.get(host.slice(dot + 1))
      if (below !== undefined) return below
    }
    return undefined
  }
}
