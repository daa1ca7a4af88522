import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, type TestContext, test } from 'node:test'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { sql } from 'kysely'
import { StartError } from '../start-error.ts'
import { TestDatabase } from '../testing/test-database.ts'
import { DatabaseLock } from './database-lock.ts'

const testDatabase = await TestDatabase.open()
after(() => testDatabase.close())
const logger = createLogger({ name: 'test', level: 'silent', json: true })
const { connectionString } = testDatabase
const launcher = join(import.meta.dirname, '../../../../berth')

interface TakeOptions {
  readonly onLost?: () => void
  readonly serverId?: string
  readonly isShared?: boolean
}

async function take(
  context: TestContext,
  { onLost = () => {}, serverId = 'one', isShared = false }: TakeOptions = {},
): Promise<DatabaseLock> {
  const patience = { startPatience: 0, lossPatience: 300 }
  const lock = await DatabaseLock.take({ connectionString, serverId, isShared, logger, onLost, ...patience })
  context.after(() => lock.close())
  return lock
}

/** Breaks the connection of the lock's holder. */
async function breakConnection(): Promise<void> {
  await sql`select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted
      and database = (select oid from pg_database where datname = current_database())`.execute(testDatabase.database)
}

/** The process id of the lock's connection. */
async function readHolder(): Promise<number | undefined> {
  const { rows } = await sql<{ pid: number }>`
    select pid from pg_locks where locktype = 'advisory' and granted
      and database = (select oid from pg_database where datname = current_database())`.execute(testDatabase.database)
  return rows[0]?.pid
}

test('a second server on the database is rejected until the first has stopped', {
  timeout: 30_000,
}, async (context) => {
  const first = await take(context)

  await assert.rejects(take(context), (error) => error instanceof StartError && error.exitCode === 75)

  await first.close()
  await take(context)
})

test('servers share a database if all are configured to, each with its own data folder', {
  timeout: 30_000,
}, async (context) => {
  const refusedBecause = (reason: RegExp) => (error: Error) =>
    error instanceof StartError && error.exitCode === 75 && reason.test(error.message)
  const alone = await take(context)
  await assert.rejects(take(context, { serverId: 'two', isShared: true }), refusedBecause(/for itself alone/))
  await alone.close()

  await take(context, { serverId: 'one', isShared: true })
  await take(context, { serverId: 'two', isShared: true })

  await assert.rejects(take(context), refusedBecause(/BERTH_SERVER_ADDRESS/))
  await assert.rejects(take(context, { serverId: 'two', isShared: true }), refusedBecause(/data folder is a copy/))
})

test('a lock is taken again after its connection breaks', { timeout: 30_000 }, async (context) => {
  await take(context, { onLost: () => assert.fail('nobody else has it') })

  const before = await readHolder()

  await breakConnection()

  // PostgreSQL reports the end of a connection before it has ended.
  for (let holder = before; holder === undefined || holder === before; ) holder = await readHolder()
  await assert.rejects(take(context), StartError)
})

test('a server whose lock was taken by another one has to stop', { timeout: 30_000 }, async (context) => {
  const lost = Promise.withResolvers<void>()
  await take(context, { onLost: () => lost.resolve() })

  // A server that tries continuously gets the lock from one that has just lost it.
  let second: DatabaseLock | undefined
  while (!second) {
    await breakConnection()
    second = await take(context).catch(() => undefined)
  }

  await lost.promise
})

test('the command refuses to start next to another server, and gives instructions', {
  timeout: 120_000,
}, async (context) => {
  await take(context)
  const dataFolder = await mkdtemp(join(tmpdir(), 'berth-second-'))
  context.after(() => rm(dataFolder, { recursive: true, force: true }))

  const second = spawn(launcher, ['serve', '--port', '0', '--data-dir', dataFolder], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, DATABASE_URL: connectionString },
  })
  const [errors, [exitCode]] = await Promise.all([text(second.stderr), once(second, 'exit')])

  assert.equal(exitCode, 75, errors)
  assert.match(errors, /another berth server uses this database: stop that one, or set DATABASE_URL/)
})
