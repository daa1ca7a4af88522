import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { access, mkdtemp, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger } from '@berth/runtime/process/logger.ts'
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { openDatabase } from '../database/database.ts'
import { EmbeddedPostgres } from '../database/embedded-postgres.ts'
import { migrate } from '../database/migrate.ts'
import { type HostFolders, openHostFolders } from '../host/host-folders.ts'
import { openServiceUser } from '../host/service-user.ts'
import { jobsSchema } from '../jobs/job-runner.ts'

/** The variable with the address of the run's PostgreSQL for test files. Without it, a file starts its own. */
export const testPostgresVariable = 'BERTH_TEST_POSTGRES'

const template = 'berth_template'
const sharedMemory = '/dev/shm'
const roomBytes = 2 * 1024 ** 3
const logger = createLogger({ name: 'test', level: 'silent', json: true })

/** A real PostgreSQL with a migrated database from which those of tests are copied. */
export class TestPostgres {
  readonly connectionString: string
  readonly #postgres: EmbeddedPostgres
  readonly #folders: HostFolders

  private constructor(postgres: EmbeddedPostgres, folders: HostFolders) {
    this.connectionString = postgres.connectionString
    this.#postgres = postgres
    this.#folders = folders
  }

  static async open(): Promise<TestPostgres> {
    const opened = await TestPostgres.start(await mkdtemp(join(await fastFolder(), 'berth-database-')))
    await runStatement(opened.connectionString, `create database ${template}`)
    await migrateOnce(databaseIn(opened.connectionString, template))
    return opened
  }

  static async start(dataFolder: string): Promise<TestPostgres> {
    const folders = await openHostFolders({ dataFolder, userRuntimeFolder: undefined })
    const postgres = new EmbeddedPostgres({
      dataFolder: folders.data,
      socketFolder: join(folders.runtime, 'postgres'),
      user: await openServiceUser('database'),
      logger,
    })
    await postgres.start()
    const started = new TestPostgres(postgres, folders)
    // Nothing of a run has to survive a power failure.
    await runStatement(started.connectionString, 'alter system set fsync = off')
    await runStatement(started.connectionString, 'select pg_reload_conf()')
    return started
  }

  /** Keeps the data folder for a later start. */
  async stop(): Promise<void> {
    await this.#postgres.stop()
    await rm(this.#folders.runtime, { recursive: true, force: true })
  }

  async close(): Promise<void> {
    await this.stop()
    await rm(this.#folders.data, { recursive: true, force: true })
  }
}

/**
 * Creates a data folder in which a server finds its database created and migrated, but empty. A start in a copy of it
 * takes half of the processor time of a first start.
 */
export async function createDataFolderTemplate(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-template-'))
  const postgres = await TestPostgres.start(folder)
  await migrateOnce(postgres.connectionString)
  const jobs = new PgBoss({ connectionString: postgres.connectionString, schema: jobsSchema })
  // A pool does not wait for the end of its connections, and one may still hear that PostgreSQL stops.
  jobs.on('error', () => {})
  await jobs.start()
  await jobs.stop()
  // A quarter of the files that each start copies. Nothing uses this database.
  await runStatement(postgres.connectionString, 'alter database template0 is_template false')
  await runStatement(postgres.connectionString, 'drop database template0')
  await postgres.stop()
  return folder
}

/**
 * Shared memory if it has room for the databases of a run. Each has 600 files, and their creation on a disk can take ten
 * times the processor time.
 */
async function fastFolder(): Promise<string> {
  try {
    await access(sharedMemory, constants.W_OK)
    const { bavail, bsize } = await statfs(sharedMemory)
    if (bavail * bsize >= roomBytes) return sharedMemory
  } catch {
    // Some containers have none.
  }
  return tmpdir()
}

async function migrateOnce(connectionString: string): Promise<void> {
  const database = openDatabase(connectionString, logger)
  await migrate(database)
  await database.destroy()
}

/** Creates a migrated database in the PostgreSQL at this address. Resolves with the database's address. */
export async function createDatabaseIn(connectionString: string): Promise<string> {
  const name = `test_${randomBytes(8).toString('hex')}`
  // Copying the files takes a quarter of the processor time of writing the blocks to the log.
  await runStatement(connectionString, `create database ${name} template ${template} strategy file_copy`)
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
