import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { BerthError } from '@berth/contract/errors.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { sql } from 'kysely'
import { TestDatabase } from '../testing/test-database.ts'
import { type Database, type DatabaseOptions, openDatabase } from './database.ts'

const testDatabase = await TestDatabase.open()
after(() => testDatabase.close())
const logger = createLogger({ name: 'test', level: 'silent', json: true })

function open(context: TestContext, options: DatabaseOptions, url = testDatabase.connectionString): Database {
  const database = openDatabase(url, logger, options)
  context.after(() => database.destroy())
  return database
}

/** Takes a connection, and keeps it until it is told to give it back. */
async function occupy(database: Database) {
  const [taken, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const held = database.connection().execute(async (connection) => {
    await sql`select 1`.execute(connection)
    taken.resolve()
    await free.promise
  })
  await Promise.race([taken.promise, held])
  return async () => {
    free.resolve()
    await held
  }
}

const ask = (database: Database) => sql<{ one: number }>`select 1 as one`.execute(database)

test('a query waits while all connections are in use, and is done when one is free', async (context) => {
  const database = open(context, { connections: 1, waitSeconds: 60 })
  const release = await occupy(database)
  const answer = ask(database)

  await release()

  assert.deepEqual((await answer).rows, [{ one: 1 }])
})

test('a query that has waited in vain says that the database is busy', { timeout: 30_000 }, async (context) => {
  const database = open(context, { connections: 1, waitSeconds: 0.1 })
  const release = await occupy(database)

  const failure = await ask(database).catch((error: unknown) => error)

  assert.ok(failure instanceof BerthError)
  assert.deepEqual([failure.code, failure.status, failure.retry], ['database_busy', 503, true])
  await release()
  assert.deepEqual((await ask(database)).rows, [{ one: 1 }])
})

test('a database that takes connections and says nothing is unavailable after 5 s, however long a query may wait', {
  timeout: 30_000,
}, async (context) => {
  const sockets: Socket[] = []
  const silent = createServer((socket) => sockets.push(socket.on('error', () => {})))
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  context.after(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  const url = `postgres://berth@127.0.0.1:${(silent.address() as AddressInfo).port}/berth`
  const database = open(context, { waitSeconds: 60 }, url)

  await assert.rejects(ask(database), { code: 'database_unavailable' })
})
