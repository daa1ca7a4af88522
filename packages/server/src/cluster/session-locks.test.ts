import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { sql } from 'kysely'
import { TestDatabase } from '../testing/test-database.ts'
import { DatabaseSessionLocks } from './session-locks.ts'

const testDatabase = await TestDatabase.open()
const { connectionString, database } = testDatabase
const [one, two] = [new DatabaseSessionLocks(connectionString), new DatabaseSessionLocks(connectionString)]
after(async () => {
  await Promise.all([one.close(), two.close()])
  await testDatabase.close()
})
const id = 'brw1' as SessionId

test('changes of one session run one after another on all servers', async () => {
  let running = 0
  let most = 0
  const change = async () => {
    running += 1
    most = Math.max(most, running)
    await sql`select pg_sleep(0.01)`.execute(database)
    running -= 1
  }

  await Promise.all(Array.from({ length: 20 }, (_value, index) => (index % 2 === 0 ? one : two).run(id, change)))

  assert.equal(most, 1)
})

test('a failed change admits the next one, and changes of other sessions do not wait', async () => {
  const held = Promise.withResolvers<void>()
  const taken = Promise.withResolvers<void>()
  const first = one.run(id, () => {
    taken.resolve()
    return held.promise
  })
  await taken.promise

  assert.equal(await two.run('brw2' as SessionId, async () => 'other'), 'other')
  const second = two.run(id, async () => 'second')
  held.reject(new Error('the browser has gone'))

  await assert.rejects(first, /the browser has gone/)
  assert.equal(await second, 'second')
})

test('locks of a server are released with its connection, and taken again with the next', async () => {
  const held = Promise.withResolvers<void>()
  const taken = Promise.withResolvers<void>()
  const first = one.run(id, async () => {
    taken.resolve()
    await held.promise
  })
  await taken.promise
  const second = two.run(id, async () => 'second')

  await sql`select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted
      and database = (select oid from pg_database where datname = current_database())`.execute(database)

  assert.equal(await second, 'second')
  held.resolve()
  await first
  assert.equal(await one.run(id, async () => 'again'), 'again')
})

test('without a database the lock reports that it is unavailable', async () => {
  const nowhere = new DatabaseSessionLocks('postgres://nobody@127.0.0.1:1/none')

  await assert.rejects(
    nowhere.run(id, async () => {}),
    (error) => error instanceof BerthError && error.code === 'database_unavailable',
  )
  await nowhere.close()
})
