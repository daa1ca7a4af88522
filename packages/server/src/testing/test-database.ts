import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { type Database, openDatabase } from '../database/database.ts'
import { EmbeddedPostgres } from '../database/embedded-postgres.ts'
import { migrate } from '../database/migrate.ts'
import { openHostFolders } from '../host/host-folders.ts'
import { openServiceUser } from '../host/service-user.ts'

/** A real PostgreSQL with berth's tables, for one test file. */
export class TestDatabase {
  readonly database: Database
  readonly connectionString: string
  readonly #postgres: EmbeddedPostgres
  readonly #folders: readonly string[]

  private constructor(database: Database, postgres: EmbeddedPostgres, folders: readonly string[]) {
    this.database = database
    this.connectionString = postgres.connectionString
    this.#postgres = postgres
    this.#folders = folders
  }

  static async open(): Promise<TestDatabase> {
    const logger = createLogger({ name: 'test', level: 'silent', json: true })
    const dataFolder = await mkdtemp(join(tmpdir(), 'berth-database-'))
    const folders = await openHostFolders({ dataFolder, userRuntimeFolder: undefined })
    const socketFolder = join(folders.runtime, 'postgres')
    const postgres = new EmbeddedPostgres({
      dataFolder: folders.data,
      socketFolder,
      user: await openServiceUser('database'),
      logger,
    })
    await postgres.start()
    const database = openDatabase(postgres.connectionString, logger)
    await migrate(database)
    return new TestDatabase(database, postgres, [folders.data, folders.runtime])
  }

  async close(): Promise<void> {
    await this.database.destroy()
    await this.#postgres.stop()
    for (const folder of this.#folders) await rm(folder, { recursive: true, force: true })
  }
}
