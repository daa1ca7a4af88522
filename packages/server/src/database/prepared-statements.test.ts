import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from 'kysely'
import { TestDatabase } from '../testing/test-database.ts'
import type { Database } from './database.ts'

let testDatabase: TestDatabase
let database: Database

before(async () => {
  testDatabase = await TestDatabase.open()
  database = testDatabase.database
})

after(() => testDatabase.close())

test('a statement with parameters is planned once per connection', async () => {
  const countPlans = () =>
    database.connection().execute(async (connection) => {
      for (let round = 0; round < 3; round += 1) await sql`select ${round}::int as round`.execute(connection)
      return sql<{ plans: number }>`select count(*)::int as plans from pg_prepared_statements
        where statement like '%as round'`.execute(connection)
    })

  const { rows } = await countPlans()

  assert.deepEqual(rows, [{ plans: 1 }])
})

test('after a column is added, a query succeeds when repeated, and has the column', async () => {
  await sql`create table changing (id int)`.execute(database)
  await sql`insert into changing values (1)`.execute(database)
  const query = () => sql`select * from changing where id = ${1}`.execute(database)
  await query()

  await sql`alter table changing add column name text default 'new'`.execute(database)

  await assert.rejects(query(), { code: 'database_unavailable', retry: true })
  assert.deepEqual((await query()).rows, [{ id: 1, name: 'new' }])
})
