import { sql } from 'kysely'

/**
 * A column to return from a statement: its transaction is committed without waiting for the disk. A crash of the
 * database can lose it, but nothing that was committed before a later transaction that waits.
 */
export const unwaitedCommit = sql<string>`set_config('synchronous_commit', 'off', true)`.as('synchronous_commit')
