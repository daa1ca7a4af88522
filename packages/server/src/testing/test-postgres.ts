import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger } from '@berth/runtime/process/logger.ts'
import pg from 'pg'
import { openDatabase } from '../database/database.ts'
import { EmbeddedPostgres } from '../database/embedded-postgres.ts'
import { migrate } from '../database/migrate.ts'
import { openHostFolders } from '../host/host-folders.ts'
import { openServiceUser } from '../host/service-user.ts'

/** Test files of one run read here where their PostgreSQL is. Without it, a file starts one of its own. */
export const testPostgresVariable = 'BERTH_TEST_POSTGRES'

const template = 'berth_template'
const logger = createLogger({ name: 'test', level: 'silent', json: true })

/** A real PostgreSQL, and in it a migrated database that those of tests are copied from. */
export class TestPostgres {
  readonly connectionString: string
  readonly #postgres: EmbeddedPostgres
  readonly #folders: readonly string[]

  private constructor(postgres: EmbeddedPostgres, folders: readonly string[]) {
    this.connectionString = postgres.connectionString
    this.#postgres = postgres
    this.#folders = folders
  }

  static async open(): Promise<TestPostgres> {
    const dataFolder = await mkdtemp(join(tmpdir(), 'berth-database-'))
    const folders = await openHostFolders({ dataFolder, userRuntimeFolder: undefined })
    const postgres = new EmbeddedPostgres({
      dataFolder: folders.data,
      socketFolder: join(folders.runtime, 'postgres'),
      user: await openServiceUser('database'),
      logger,
    })
    await postgres.start()
    const opened = new TestPostgres(postgres, [folders.data, folders.runtime])
    // Nothing of a run has to survive a power failure.
    await runStatement(opened.connectionString, 'alter system set fsync = off')
    await runStatement(opened.connectionString, 'select pg_reload_conf()')
    await runStatement(opened.connectionString, `create database ${template}`)
    const database = openDatabase(databaseIn(opened.connectionString, template), logger)
    await migrate(database)
    await database.destroy()
    return opened
  }

  async close(): Promise<void> {
    await this.#postgres.stop()
    for (const folder of this.#folders) await rm(folder, { recursive: true, force: true })
  }
}

/** Creates a migrated database in the PostgreSQL of this address. Resolves with its own address. */
export async function createDatabaseIn(connectionString: string): Promise<string> {
  const name = `test_${randomBytes(8).toString('hex')}`
  await runStatement(connectionString, `create database ${name} template ${template}`)
  return databaseIn(connectionString, name)
}

export async function dropDatabase(connectionString: string): Promise<void> {
  const { pathname } = new URL(connectionString)
  await runStatement(databaseIn(connectionString, 'postgres'), `drop database ${pathname.slice(1)} with (force)`)
}

function databaseIn(connectionString: string, name: string): string {
  const url = new URL(connectionString)
  url.pathname = `/${name}`
  return url.href
}

async function runStatement(connectionString: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
