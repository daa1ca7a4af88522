import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { sql } from 'kysely'
import { FolderBlobs } from '../../blobs/folder-blobs.ts'
import { ServerStore } from '../../features/servers/server-store.ts'
import { BlobSweep } from '../../jobs/sweep-blobs.ts'
import { StartError } from '../../start-error.ts'
import { TestDatabase } from '../../testing/test-database.ts'
import { SharedBlobs } from '../shared-blobs.ts'
import { joinServers } from './join-servers.ts'

const { database, ...testDatabase } = await open()
const folder = await mkdtemp(join(tmpdir(), 'berth-join-'))
after(async () => {
  await testDatabase.close()
  await rm(folder, { recursive: true })
})
const servers = new ServerStore(database)
const [blobs, otherBlobs] = [
  await FolderBlobs.openShared(join(folder, 'shared')),
  await FolderBlobs.openShared(join(folder, 'other')),
]

beforeEach(async () => {
  await database.deleteFrom('servers').execute()
  await database.deleteFrom('shared_blobs').execute()
})

async function open() {
  const opened = await TestDatabase.open()
  return { database: opened.database, close: () => opened.close() }
}

interface Joining {
  readonly id: string
  readonly address?: string
  readonly keyCheck?: string
  readonly blobs?: FolderBlobs
}

async function joinAs({
  id,
  address = `http://${id}.test`,
  keyCheck = 'k',
  blobs: own = blobs,
}: Joining): Promise<void> {
  const report = { driver: 'fake', sessions: 0, freeSessions: 3, freeMemoryBytes: 2 ** 33, isDraining: false }
  await joinServers({
    database,
    servers,
    sharedBlobs: new SharedBlobs(database, own),
    serverId: id,
    address,
    keyCheck,
    appear: () => servers.tell(id, { address, keyCheck, ...report }),
  })
}

/** The server was last seen two minutes ago. */
async function leave(id: string): Promise<void> {
  const seen_at = sql<Date>`now() - interval '2 minutes'`
  await database.updateTable('servers').set({ seen_at }).where('id', '=', id).execute()
}

test('servers with equal settings find each other, also after a restart', async () => {
  await joinAs({ id: 'one' })
  await joinAs({ id: 'two' })
  await joinAs({ id: 'one' })

  const present = await servers.listPresent()
  const [row] = await database.selectFrom('servers').selectAll().where('id', '=', 'one').execute()

  assert.deepEqual(
    present.map(({ id, address }) => [id, address]),
    [
      ['one', 'http://one.test'],
      ['two', 'http://two.test'],
    ],
  )
  assert.deepEqual([row?.driver, row?.free_sessions, row?.free_memory_bytes], ['fake', 3, 2 ** 33])
})

for (const [what, joining, named] of [
  [
    'the address of another server',
    { address: 'http://one.test' },
    /^BERTH_SERVER_ADDRESS .* is already used by the server one/,
  ],
  ['another master key', { keyCheck: 'other' }, /^BERTH_MASTER_KEY/],
  ['other blobs', { blobs: otherBlobs }, /^this server uses other blobs .*BERTH_BLOBS_FOLDER/],
] as const) {
  test(`a server with ${what} is rejected next to a running one, with the reason`, async () => {
    await joinAs({ id: 'one' })
    const refused = (error: Error) => error instanceof StartError && error.exitCode === 64 && named.test(error.message)

    await assert.rejects(joinAs({ id: 'two', ...joining }), refused)
    await leave('one')

    await joinAs({ id: 'two', ...joining })
  })
}

test('of servers with different settings that start together, only the first is accepted', async () => {
  const outcomes = await Promise.allSettled([
    joinAs({ id: 'one' }),
    joinAs({ id: 'two', blobs: otherBlobs }),
    joinAs({ id: 'three' }),
    joinAs({ id: 'four', blobs: otherBlobs }),
  ])

  const [one, two, three, four] = outcomes.map(({ status }) => status)
  assert.deepEqual([one, two], [three, four])
  assert.notEqual(one, two)
})

test('the sweep of blobs keeps the marker of the servers', async () => {
  await joinAs({ id: 'one' })
  const sharedBlobs = new SharedBlobs(database, blobs)
  const inTwoHours = { now: () => new Date(Date.now() + 2 * 60 * 60 * 1000) }
  const logger = { info: () => {} } as never

  await new BlobSweep({ blobs, owners: [sharedBlobs], clock: inTwoHours, logger }).sweep()

  assert.equal(await sharedBlobs.compare({ isFirst: false }), true)
})
