import { type Expression, type RawBuilder, sql } from 'kysely'

/** Normalizes a name for comparison without case and accents. */
export function plainLowerCase(text: string): string {
  return text.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase()
}

/** The same for stored text that may have accents. Apply it to both sides of a comparison. */
export function plainForm(text: Expression<string | null> | string): RawBuilder<string> {
  return sql<string>`lower(regexp_replace(normalize(${typeof text === 'string' ? sql`${text}::text` : text}, NFD), ${combiningMarks}, '', 'g'))`
}

const combiningMarks = sql.lit('[\\u0300-\\u036f]')
