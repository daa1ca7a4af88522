import { createLogger } from '@berth/runtime/process/logger.ts'
import { type Database, openDatabase } from '../database/database.ts'
import { createDatabaseIn, dropDatabase, TestPostgres, testPostgresVariable } from './test-postgres.ts'

/** A real database with berth's tables, for one test file. */
export class TestDatabase {
  readonly database: Database
  readonly connectionString: string
  /** Absent when all files of the run share one. */
  readonly #postgres: TestPostgres | undefined

  private constructor(connectionString: string, postgres: TestPostgres | undefined) {
    this.database = openDatabase(connectionString, createLogger({ name: 'test', level: 'silent', json: true }))
    this.connectionString = connectionString
    this.#postgres = postgres
  }

  static async open(): Promise<TestDatabase> {
    const shared = process.env[testPostgresVariable]
    const postgres = shared === undefined ? await TestPostgres.open() : undefined
    return new TestDatabase(await createDatabaseIn(shared ?? (postgres as TestPostgres).connectionString), postgres)
  }

  async close(): Promise<void> {
    await this.database.destroy()
    if (this.#postgres) await this.#postgres.close()
    else await dropDatabase(this.connectionString)
  }
}
