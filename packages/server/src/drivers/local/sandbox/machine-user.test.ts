import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { claimUser, releaseOrphanedUsers, releaseUser, userRange } from './machine-user.ts'

test('uses high user ids if they exist', () => {
  const range = userRange('         0          0 4294967295\n')

  assert.ok(range.first > 1_000_000_000)
})

test('uses user ids below 65,536 in a container without higher ones', () => {
  const range = userRange('         0     100000      65536\n')

  assert.ok(range.first > 1_000)
  assert.ok(range.first + range.count < 60_000)
})

test('gives concurrent callers different users, and reuses free ones', {
  skip: process.geteuid?.() !== 0,
}, async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-test-'))
  context.after(() => rm(folder, { recursive: true }))
  const owners = Array.from({ length: 20 }, (_, index) => join(folder, String(index)))
  await Promise.all(owners.map((owner) => mkdir(owner)))

  const users = await Promise.all(owners.map((owner) => claimUser(owner)))
  await releaseUser(owners[7] ?? '')
  const again = await claimUser(owners[7] ?? '')
  await rm(folder, { recursive: true })
  await releaseOrphanedUsers()
  await mkdir(folder)
  const afterwards = await claimUser(folder)
  await releaseUser(folder)

  assert.equal(new Set(users.map(({ uid }) => uid)).size, 20)
  // Machines of other tests may take what was released, and no more of them than there are run.
  const highest = Math.max(...users.map(({ uid }) => uid))
  for (const { uid } of [again, afterwards]) assert.ok(uid <= highest + 100, `${uid} after ${highest}`)
})
