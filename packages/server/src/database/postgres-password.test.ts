import assert from 'node:assert/strict'
import { chown, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createLogger } from '@berth/runtime/process/logger.ts'
import pg from 'pg'
import { type HostFolders, openHostFolders } from '../host/host-folders.ts'
import { openServiceUser } from '../host/service-user.ts'
import { EmbeddedPostgres } from './embedded-postgres.ts'

const logger = createLogger({ name: 'test', level: 'silent', json: true })

async function openFolders(context: TestContext): Promise<HostFolders> {
  const dataFolder = await mkdtemp(join(tmpdir(), 'berth-password-'))
  const folders = await openHostFolders({ dataFolder, userRuntimeFolder: undefined })
  context.after(async () => {
    for (const folder of [folders.data, folders.runtime]) await rm(folder, { recursive: true })
  })
  return folders
}

async function openPostgres({ data, runtime }: HostFolders): Promise<EmbeddedPostgres> {
  const user = await openServiceUser('database')
  return new EmbeddedPostgres({ dataFolder: data, socketFolder: join(runtime, 'postgres'), user, logger })
}

async function ask(connectionString: string): Promise<unknown> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query('select current_user as name')
    return rows[0]?.name
  } finally {
    await client.end()
  }
}

function without(password: 'any' | 'wrong', connectionString: string): string {
  return connectionString.replace(/berth:\w+@/, password === 'any' ? 'berth@' : 'berth:wrong@')
}

test('PostgreSQL requires the password, which only its owner can read', async (context) => {
  const folders = await openFolders(context)
  const postgres = await openPostgres(folders)
  await postgres.start()
  context.after(() => postgres.stop())
  const { connectionString } = postgres

  const [refusedWithout, refusedWrong] = await Promise.allSettled([
    ask(without('any', connectionString)),
    ask(without('wrong', connectionString)),
  ])

  assert.equal(await ask(connectionString), 'berth')
  assert.equal(refusedWithout.status, 'rejected')
  assert.equal(refusedWrong.status, 'rejected')
  const { mode, uid } = await stat(join(folders.data, 'postgres-password'))
  assert.deepEqual([mode & 0o777, uid], [0o600, process.geteuid?.()])
})

for (const state of ['stopped', 'running'] as const) {
  test(`a cluster without passwords requires one from the next start on, ${state} until then`, async (context) => {
    const folders = await openFolders(context)
    const first = await openPostgres(folders)
    await first.start()
    await allowWithoutPassword(folders, first)
    if (state === 'stopped') await first.stop()

    const next = await openPostgres(folders)
    await next.start()
    context.after(() => next.stop())

    assert.equal(await ask(next.connectionString), 'berth')
    await assert.rejects(ask(without('any', next.connectionString)))
  })
}

/** Simulates versions of berth without a password. */
async function allowWithoutPassword({ data }: HostFolders, postgres: EmbeddedPostgres): Promise<void> {
  const client = new pg.Client({ connectionString: postgres.connectionString })
  await client.connect()
  const path = join(data, 'postgres', 'pg_hba.conf')
  await writeFile(path, 'local all all trust\n')
  await client.query('alter role berth password null')
  await client.query('select pg_reload_conf()')
  await client.end()
  await rm(join(data, 'postgres-password'))
  const user = await openServiceUser('database')
  if (user) await chown(path, user.uid, user.gid)
  assert.match(await readFile(path, 'utf8'), /trust/)
  // Each process applies the changed settings at a different time.
  while ((await ask(without('any', postgres.connectionString)).catch(() => undefined)) !== 'berth') await delay(10)
}
