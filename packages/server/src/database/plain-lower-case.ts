import { type Expression, type RawBuilder, sql } from 'kysely'

/** For names that are compared whatever their case and accents; stored ones have none. */
export function plainLowerCase(text: string): string {
  return text.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase()
}

/** The same of stored text that may have accents. Both sides of a comparison take this form. */
export function plainForm(text: Expression<string | null> | string): RawBuilder<string> {
  return sql<string>`lower(regexp_replace(normalize(${typeof text === 'string' ? sql`${text}::text` : text}, NFD), ${combiningMarks}, '', 'g'))`
}

const combiningMarks = sql.lit('[\\u0300-\\u036f]')
