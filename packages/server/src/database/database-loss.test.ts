import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { sql } from 'kysely'
import { openHostFolders } from '../host/host-folders.ts'
import { openServiceUser } from '../host/service-user.ts'
import { openDatabase } from './database.ts'
import { EmbeddedPostgres } from './embedded-postgres.ts'

const logger = createLogger({ name: 'test', level: 'silent', json: true })

test('PostgreSQL starts although another process has the number of the one before', async (context) => {
  const user = await openServiceUser('database')
  const folders = await openHostFolders({
    dataFolder: await mkdtemp(join(tmpdir(), 'berth-number-')),
    userRuntimeFolder: undefined,
  })
  const socketFolder = join(folders.runtime, 'postgres')
  const postgres = new EmbeddedPostgres({ dataFolder: folders.data, socketFolder, user, logger })
  const other = spawn('sleep', ['infinity'], { stdio: 'ignore', ...user })
  context.after(async () => {
    other.kill()
    await postgres.stop()
    for (const folder of [folders.data, folders.runtime]) await rm(folder, { recursive: true })
  })
  const file = join(folders.data, 'postgres', 'postmaster.pid')
  await postgres.start()
  const left = await readFile(file, 'utf8')
  await postgres.stop()

  await writeFile(file, left.replace(/^\d+/, `${other.pid}`))
  await postgres.start()

  assert.notEqual(Number.parseInt(await readFile(file, 'utf8'), 10), other.pid)
})

test('a killed PostgreSQL is restarted, and until then each query reports that it is unavailable', async (context) => {
  const folders = await openHostFolders({
    dataFolder: await mkdtemp(join(tmpdir(), 'berth-loss-')),
    userRuntimeFolder: undefined,
  })
  const socketFolder = join(folders.runtime, 'postgres')
  const postgres = new EmbeddedPostgres({
    dataFolder: folders.data,
    socketFolder,
    user: await openServiceUser('database'),
    logger,
  })
  await postgres.keepRunning()
  const database = openDatabase(postgres.connectionString, logger)
  context.after(async () => {
    await database.destroy()
    await postgres.stop()
    for (const folder of [folders.data, folders.runtime]) await rm(folder, { recursive: true })
  })
  const underWay = sql`select pg_sleep(60)`.execute(database)
  await sql`select 1`.execute(database)

  process.kill(Number.parseInt(await readFile(join(folders.data, 'postgres', 'postmaster.pid'), 'utf8'), 10), 'SIGKILL')

  await assert.rejects(underWay, { code: 'database_unavailable', status: 503, retry: true })
  for (;;) {
    const answer = await sql`select 1`.execute(database).catch((error: Error & { code?: string }) => error)
    if (!(answer instanceof Error)) break
    assert.equal(answer.code, 'database_unavailable')
    await delay(10) // Leaves processor time to PostgreSQL.
  }
  await assert.rejects(sql`select 1 / 0`.execute(database), { code: '22012' }, 'a query that is wrong stays what it is')
})
