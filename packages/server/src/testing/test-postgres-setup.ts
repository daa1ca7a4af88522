import { TestPostgres, testPostgresVariable } from './test-postgres.ts'

let postgres: TestPostgres | undefined

/** @public Called by the test runner, before the first file of a run. */
export async function globalSetup(): Promise<void> {
  postgres = await TestPostgres.open()
  process.env[testPostgresVariable] = postgres.connectionString
}

/** @public Called by the test runner, after the last file of a run. */
export async function globalTeardown(): Promise<void> {
  Reflect.deleteProperty(process.env, testPostgresVariable)
  await postgres?.close()
}
