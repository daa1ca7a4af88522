import { type ParamSupport, type PortableParam, portableParams } from '@berth/contract/search/search.ts'
import type { Note, PortableParams, Recency } from './provider.ts'

type Support = ParamSupport['support'] | ParamSupport

/** How a provider supports each portable parameter. Parameters that are not listed are unsupported. */
export function support(named: Partial<Record<PortableParam, Support>>): Record<PortableParam, ParamSupport> {
  return Object.fromEntries(
    portableParams.map((param) => {
      const known = named[param] ?? 'unsupported'
      return [param, typeof known === 'string' ? { support: known } : known]
    }),
  ) as Record<PortableParam, ParamSupport>
}

const daysOf: Readonly<Record<Recency, number>> = { hour: 1, day: 1, week: 7, month: 31, year: 366 }
const dayMilliseconds = 24 * 60 * 60 * 1000

/** The first day of a period that ends today. */
export function sinceDate(recency: Recency, now: Date): string {
  return new Date(now.getTime() - daysOf[recency] * dayMilliseconds).toISOString().slice(0, 10)
}

/** For a provider without a period shorter than a day. */
export function atLeastDay(recency: Recency, note: Note): Exclude<Recency, 'hour'> {
  if (recency !== 'hour') return recency
  note('recency_emulated', 'recency', 'The shortest period of this provider is a day.')
  return 'day'
}

/** The first domains, up to the limit of the provider. */
export function firstDomains(
  domains: readonly string[] | undefined,
  maximum: number,
  param: 'include_domains' | 'exclude_domains',
  note: Note,
): readonly string[] | undefined {
  if (!domains || domains.length === 0) return undefined
  if (domains.length > maximum) note('domains_truncated', param, `This provider takes ${maximum} domains at most.`)
  return domains.slice(0, maximum)
}

const maxOperators = 15

/** Adds `site:` operators to the query, which search engines support without guarantee. */
export function withSites(text: string, params: PortableParams, note: Note): string {
  const emulated = (param: 'include_domains' | 'exclude_domains') => {
    const domains = firstDomains(params[param], maxOperators, param, note)
    if (domains) note('filter_emulated', param, 'Domains are selected by operators in the query, and in the results.')
    return domains ?? []
  }
  const included = emulated('include_domains').map((domain) => `site:${domain}`)
  const excluded = emulated('exclude_domains').map((domain) => `-site:${domain}`)
  const group = included.length > 1 ? `(${included.join(' OR ')})` : included[0]
  return [text, group, ...excluded].filter(Boolean).join(' ')
}

/** Formats 2026-01-31 as 1/31/2026. */
export function usDate(date: string): string {
  const [year, month, day] = date.split('-').map(Number)
  return `${month}/${day}/${year}`
}

/** The language without its region: `pt-BR` becomes `pt`. */
export function baseLanguage(tag: string): string {
  return (tag.split('-')[0] ?? tag).toLowerCase()
}

/** Omits undefined values and converts the others to text. */
export function queryOf(values: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      value === undefined || value === null ? [] : [[name, String(value)]],
    ),
  )
}
