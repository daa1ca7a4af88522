import type { Logger } from '@berth/runtime/process/logger.ts'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import type { Tables } from './tables.ts'

export type Database = Kysely<Tables>

const maxConnections = 20
const connectTimeoutMilliseconds = 5_000
const int8 = 20

/** Opens a pool. A connection that breaks while idle is dropped and made anew by the next query. */
export function openDatabase(connectionString: string, logger: Logger): Database {
  // Durations in milliseconds stay far below 2^53.
  pg.types.setTypeParser(int8, Number)
  const pool = new pg.Pool({
    connectionString,
    max: maxConnections,
    connectionTimeoutMillis: connectTimeoutMilliseconds,
    allowExitOnIdle: true,
  })
  pool.on('error', (error) => logger.warn({ reason: error.message }, 'an idle database connection broke'))
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
}

/** Whether the error is PostgreSQL's word that the constraint, or unique index, was violated. */
export function violates(error: unknown, constraint: string): boolean {
  return error instanceof pg.DatabaseError && error.constraint === constraint
}
