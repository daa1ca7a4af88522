import { BerthError, type ErrorCode } from '@berth/contract/errors.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely'
import pg from 'pg'
import type { Tables } from './tables.ts'

export type Database = Kysely<Tables>

const maxConnections = 20
/** The number of idle connections to keep open, so that a burst of requests finds prepared statements. */
const keptConnections = 5
const connectTimeoutMilliseconds = 5_000
/** While the database responds, a burst of requests is served late instead of being refused. */
export const defaultWaitSeconds = 15
/** The pool's message after the time limit for a free connection. */
const waitedInVain = 'timeout exceeded when trying to connect'
const maxPreparedStatements = 200
const int8 = 20

export interface DatabaseOptions {
  /** How long a query waits for a connection while all of them are in use. */
  readonly waitSeconds?: number
  readonly connections?: number
}

/** Opens a pool. A connection that fails while idle is replaced by the next query. */
export function openDatabase(
  connectionString: string,
  logger: Logger,
  { waitSeconds = defaultWaitSeconds, connections = maxConnections }: DatabaseOptions = {},
): Database {
  // Durations in milliseconds stay far below 2^53.
  pg.types.setTypeParser(int8, Number)
  const pool = new pg.Pool({
    connectionString,
    Client: ConnectingClient,
    max: connections,
    min: Math.min(keptConnections, connections),
    connectionTimeoutMillis: waitSeconds * 1_000,
    allowExitOnIdle: true,
  })
  // A connection that fails while in use reports this twice: to the query, and as an event that would end this process.
  pool.on('connect', (client) => client.on('error', () => {}))
  pool.on('error', (error) => logger.warn({ reason: error.message }, 'an idle database connection failed'))
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool: new ErrorMappingPool(pool) }) })
}

/** The pool's own limit covers both connecting to the database and waiting for a free connection. */
class ConnectingClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super({ ...config, connectionTimeoutMillis: connectTimeoutMilliseconds })
  }
}

/** Distinguishes an unavailable database from an invalid query. */
class ErrorMappingPool implements PostgresPool {
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
    // Kysely uses cursors, the other form of a query, only for streaming, which berth does not use.
    return { query: query as unknown as PostgresPoolClient['query'], release: () => client.release(isStale) }
  }

  end(): Promise<void> {
    return this.#pool.end()
  }
}

/**
 * Names statements, so that each connection plans them once. That saves a third of the time of a short query. There are
 * few texts, because values are parameters. Beyond the limit, statements are not prepared.
 */
class PreparedStatements {
  readonly #names = new Map<string, string>()

  prepare(text: string, parameters: readonly unknown[]): pg.QueryConfig {
    const values = [...parameters]
    // A text without parameters may contain several statements, as migrations do, and those cannot be prepared.
    if (values.length === 0) return { text, values }
    const known = this.#names.get(text)
    if (known !== undefined) return { name: known, text, values }
    if (this.#names.size >= maxPreparedStatements) return { text, values }
    const name = `berth_${this.#names.size}`
    this.#names.set(text, name)
    return { name, text, values }
  }
}

/**
 * A later version of berth has changed the tables meanwhile. The connection is closed, and a new one prepares the
 * statement again.
 */
function isStalePlan(error: Error): boolean {
  // Other errors share its code, and its message is in the language of the database.
  return error instanceof pg.DatabaseError && error.routine === 'RevalidateCachedQuery'
}

/**
 * A text that PostgreSQL cannot store: with a NUL character, which JSON can contain in escaped form. No resource has
 * such a name.
 */
const unstorableText = ['22021', '22P05']
/** Every table refers to projects with this constraint, and a row can be inserted after its project was deleted. */
const projectReference = /project_id_fkey$/
const foreignKeyViolation = '23503'

function throwUnavailable(error: Error): never {
  if (error instanceof pg.DatabaseError && unstorableText.includes(error.code ?? '')) {
    throw new BerthError('bad_request', { reason: 'Text must not contain a NUL character.' }, { cause: error })
  }
  if (
    error instanceof pg.DatabaseError &&
    error.code === foreignKeyViolation &&
    projectReference.test(error.constraint ?? '')
  )
    throw new BerthError('project_not_found', undefined, { cause: error })
  if (error.message === waitedInVain) throw new BerthError('database_busy', undefined, { cause: error })
  throw asUnavailable(error)
}

/** Whether the query may succeed later, because the database was unavailable or busy. */
export function mayPass(error: unknown): boolean {
  return error instanceof BerthError && passingCodes.includes(error.code)
}

const passingCodes: readonly ErrorCode[] = ['database_unavailable', 'database_busy']

/** Converts errors of an unavailable database into ours. Errors of invalid queries stay unchanged. */
export function asUnavailable(error: Error): Error {
  return isUnavailable(error) ? new BerthError('database_unavailable', undefined, { cause: error }) : error
}

/**
 * Classes of SQLSTATE: connection failures, lack of resources (disk, memory, connections), and a server that stops or
 * starts.
 */
const unavailableClasses = ['08', '53', '57']

function isUnavailable(error: Error): boolean {
  if (isStalePlan(error)) return true
  if (error instanceof pg.DatabaseError) return unavailableClasses.includes(error.code?.slice(0, 2) ?? '')
  // All other errors come from the connection, except those of a wrong use of the client.
  return !(error instanceof TypeError)
}

/** Whether PostgreSQL reports that the constraint or unique index was violated. */
export function violates(error: unknown, constraint: string): boolean {
  return error instanceof pg.DatabaseError && error.constraint === constraint
}

/** The table whose rows prevented the deletion of a project. */
export function referencingTable(error: unknown): string | undefined {
  if (!(error instanceof BerthError) || error.code !== 'project_not_found') return undefined
  return error.cause instanceof pg.DatabaseError ? error.cause.table : undefined
}
