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

async function take(context: TestContext, onLost = () => {}): Promise<DatabaseLock> {
  const lock = await DatabaseLock.take({ connectionString, logger, onLost, startPatience: 0, lossPatience: 300 })
  context.after(() => lock.close())
  return lock
}

/** Breaks the connection of whoever holds the lock. */
async function breakConnection(): Promise<void> {
  await sql`select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted`.execute(
    testDatabase.database,
  )
}

async function isHeld(): Promise<boolean> {
  const { rows } = await sql`select from pg_locks where locktype = 'advisory' and granted`.execute(
    testDatabase.database,
  )
  return rows.length > 0
}

test('a second server on the database is refused until the first has stopped', { timeout: 30_000 }, async (context) => {
  const first = await take(context)

  await assert.rejects(take(context), (error) => error instanceof StartError && error.exitCode === 75)

  await first.close()
  await take(context)
})

test('a lock is acquired again after its connection failed', { timeout: 30_000 }, async (context) => {
  await take(context, () => assert.fail('nobody else has it'))

  await breakConnection()

  while (!(await isHeld()));
  await assert.rejects(take(context), StartError)
})

test('a server whose lock was taken by another one has to stop', { timeout: 30_000 }, async (context) => {
  const lost = Promise.withResolvers<void>()
  await take(context, () => lost.resolve())

  // Whoever asks all the time wins it from a server that has just lost it.
  let second: DatabaseLock | undefined
  while (!second) {
    await breakConnection()
    second = await take(context).catch(() => undefined)
  }

  await lost.promise
})

test('the command refuses to start beside another server, and says what to do', {
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
