import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { sql } from 'kysely'
import { TestDatabase } from '../testing/test-database.ts'
import { type Database, openDatabase } from './database.ts'
import { migrate } from './migrate.ts'

const logger = createLogger({ name: 'test', level: 'silent', json: true })
const testDatabase = await TestDatabase.open()
const name = `${new URL(testDatabase.connectionString).pathname.slice(1)}_empty`
await sql.raw(`create database ${name}`).execute(testDatabase.database)
const url = new URL(testDatabase.connectionString)
url.pathname = `/${name}`
const servers = [1, 2, 3].map(() => openDatabase(url.href, logger))
const [database] = servers as [Database]
after(async () => {
  await Promise.all(servers.map((server) => server.destroy()))
  await sql.raw(`drop database ${name} with (force)`).execute(testDatabase.database)
  await testDatabase.close()
})

async function listDone(): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(database)
  return rows.map((row) => row.name)
}

test('servers that start together migrate the database once', async () => {
  await Promise.all(servers.map(migrate))

  const files = await readdir(join(import.meta.dirname, 'migrations'))
  assert.deepEqual(await listDone(), files.map((file) => file.replace('.sql', '')).toSorted())
})

test('a server starts on the database of a newer one, and leaves its migrations as they are', async () => {
  await sql`insert into kysely_migration (name, timestamp) values ('9000-of-the-next-version', '2999-01-01')`.execute(
    database,
  )

  await Promise.all(servers.map(migrate))

  assert.equal((await listDone()).at(-1), '9000-of-the-next-version')
})

test('a database with an unknown migration of an earlier version is rejected', async () => {
  await sql`insert into kysely_migration (name, timestamp) values ('0001-of-another-program', '2020-01-01')`.execute(
    database,
  )

  await assert.rejects(migrate(database), /0001-of-another-program is missing/)
})
