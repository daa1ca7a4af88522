import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Profile } from '@berth/contract/profiles/profile.ts'
import { TestServer } from '../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

test('only old blobs without a reference are removed', async () => {
  const project = await server.project()
  await project.call<Profile>('POST', '/profiles', { name: 'kept' })
  const { session_id } = await project.session({ profile: { name: 'kept', save_changes: true } })
  await project.call('DELETE', `/browsers/${session_id}`)
  const { blobs, blobSweep } = server.services
  await blobs.write('left-by-a-crash', [Buffer.from('x')] as unknown as AsyncIterable<Uint8Array>)
  const names = () => Array.fromAsync(blobs.list({ before: new Date(Date.now() + 60_000) }))

  await blobSweep.sweep()
  assert.equal((await names()).length, 2, 'what was written just now may get its row in a moment')
  server.clock.advance(2 * 60 * 60)
  await blobSweep.sweep()

  assert.equal((await names()).length, 1)
  assert.match((await names())[0] ?? '', /^profile-/)
  assert.equal((await project.call<Profile[]>('GET', '/profiles')).status, 200)
})
