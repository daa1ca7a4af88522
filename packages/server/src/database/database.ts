import { BerthError } from '@berth/contract/errors.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely'
import pg from 'pg'
import type { Tables } from './tables.ts'

export type Database = Kysely<Tables>

const maxConnections = 20
const connectTimeoutMilliseconds = 5_000
const maxPreparedStatements = 200
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
  // One that breaks while it is in use says so twice: to the query, and in an event that would end this process.
  pool.on('connect', (client) => client.on('error', () => {}))
  pool.on('error', (error) => logger.warn({ reason: error.message }, 'an idle database connection broke'))
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool: new TellingPool(pool) }) })
}

/** Tells a database that cannot be reached, or is not ready, from a query that is wrong. */
class TellingPool implements PostgresPool {
  readonly options = {}
  readonly #pool: pg.Pool
  readonly #statements = new PreparedStatements()

  constructor(pool: pg.Pool) {
    this.#pool = pool
  }

  async connect(): Promise<PostgresPoolClient> {
    const client = await this.#pool.connect().catch(throwUnavailable)
    let isStale = false
    const query = async (text: string, parameters: readonly unknown[]) =>
      client.query(this.#statements.prepare(text, parameters)).catch((error: Error) => {
        isStale ||= isStalePlan(error)
        throwUnavailable(error)
      })
    // Kysely asks for cursors, the other form of a query, only when it streams, which berth does not.
    return { query: query as unknown as PostgresPoolClient['query'], release: () => client.release(isStale) }
  }

  end(): Promise<void> {
    return this.#pool.end()
  }
}

/**
 * Names for statements, under which each connection has them planned once: that is a third of the time of a short
 * query. The texts are few, for values are parameters; should they ever be many, the later ones go without.
 */
class PreparedStatements {
  readonly #names = new Map<string, string>()

  prepare(text: string, parameters: readonly unknown[]): pg.QueryConfig {
    const values = [...parameters]
    // What has no parameters may be several statements, as migrations are, and those cannot be prepared.
    if (values.length === 0) return { text, values }
    const known = this.#names.get(text)
    if (known !== undefined) return { name: known, text, values }
    if (this.#names.size >= maxPreparedStatements) return { text, values }
    const name = `berth_${this.#names.size}`
    this.#names.set(text, name)
    return { name, text, values }
  }
}

/** A later version of berth has changed the tables meanwhile: the connection goes, and a new one plans anew. */
function isStalePlan(error: Error): boolean {
  // Its code stands for other errors too, and its words are in the language of the database.
  return error instanceof pg.DatabaseError && error.routine === 'RevalidateCachedQuery'
}

/** A text that PostgreSQL cannot hold: with a NUL character, which JSON may escape. Nothing of ours is so called. */
const unstorableText = ['22021', '22P05']
/** Every table refers to projects in this way, and its row can come after the project has gone. */
const projectReference = /project_id_fkey$/
const foreignKeyViolation = '23503'

function throwUnavailable(error: Error): never {
  if (error instanceof pg.DatabaseError && unstorableText.includes(error.code ?? '')) {
    throw new BerthError('bad_request', { reason: 'Text must not hold a NUL character.' }, { cause: error })
  }
  if (
    error instanceof pg.DatabaseError &&
    error.code === foreignKeyViolation &&
    projectReference.test(error.constraint ?? '')
  )
    throw new BerthError('project_not_found', undefined, { cause: error })
  throw asUnavailable(error)
}

/** What a database that cannot be reached, or is not ready, says is an error of ours; a wrong query stays what it is. */
export function asUnavailable(error: Error): Error {
  return isUnavailable(error) ? new BerthError('database_unavailable', undefined, { cause: error }) : error
}

/** Classes of SQLSTATE: connection failures, lack of resources (disk, memory, connections), and a server that stops or starts. */
const unavailableClasses = ['08', '53', '57']

function isUnavailable(error: Error): boolean {
  if (isStalePlan(error)) return true
  if (error instanceof pg.DatabaseError) return unavailableClasses.includes(error.code?.slice(0, 2) ?? '')
  // Everything else that the client throws comes from its connection, but for a wrong use of the client itself.
  return !(error instanceof TypeError)
}

/** Whether the error is PostgreSQL's word that the constraint, or unique index, was violated. */
export function violates(error: unknown, constraint: string): boolean {
  return error instanceof pg.DatabaseError && error.constraint === constraint
}

/** The table whose rows kept a project from being deleted. */
export function holderOf(error: unknown): string | undefined {
  if (!(error instanceof BerthError) || error.code !== 'project_not_found') return undefined
  return error.cause instanceof pg.DatabaseError ? error.cause.table : undefined
}
