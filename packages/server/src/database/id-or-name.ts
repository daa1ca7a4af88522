import { type RawBuilder, sql } from 'kysely'

/** A condition: the row has this id or name. */
export function hasIdOrName(idOrName: string): RawBuilder<boolean> {
  return sql<boolean>`(id = ${idOrName} or name = ${idOrName})`
}

/** The descending order that prefers a row with this id to one with this name. */
export function hasId(id: string): RawBuilder<boolean> {
  return sql<boolean>`id = ${id}`
}
