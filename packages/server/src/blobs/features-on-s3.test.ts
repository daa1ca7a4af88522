import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { SessionId } from '@berth/contract/common/ids.ts'
import type { Extension } from '@berth/contract/extensions/extension.ts'
import { zip } from '@berth/runtime/testing/zip.ts'
import { type TestProject, TestServer } from '../testing/server-test.ts'
import { S3Server } from '../testing/services/s3-server.ts'
import { S3Blobs } from './s3-blobs.ts'

const s3 = await S3Server.open()
const settings = await s3.bucket()
const blobs = await S3Blobs.open(settings)
const server = await TestServer.open({ openBlobs: async () => blobs })
after(async () => {
  await server.close()
  blobs.close()
  await s3.close()
})

const names = () => Array.fromAsync(blobs.list({ before: new Date(Date.now() + 60_000) }))

function get(project: TestProject, path: string): Promise<Response> {
  return fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${project.key}` } })
}

test('an extension is stored in the bucket, and removed with its delete', async () => {
  const project = await server.project()
  const archive = zip({
    name: 'manifest.json',
    content: JSON.stringify({ manifest_version: 3, name: 'test', version: '1.0' }),
  })
  const form = new FormData()
  form.set('file', new Blob([new Uint8Array(archive)]), 'it.zip')
  const headers = { authorization: `Bearer ${project.key}` }
  const { id } = (await (
    await fetch(`${server.url}/extensions`, { method: 'POST', headers, body: form })
  ).json()) as Extension

  assert.match((await names()).join(), /^extension-[a-z0-9-]+$/)
  assert.deepEqual(Buffer.from(await (await get(project, `/extensions/${id}`)).arrayBuffer()), archive)

  assert.equal((await project.call('DELETE', `/extensions/${id}`)).status, 204)
  assert.deepEqual(await names(), [])
})

test('a profile is saved to the bucket, replaced and loaded from it, and leftovers of a crash are removed', async () => {
  const project = await server.project()
  await project.call('POST', '/profiles', { name: 'ann' })
  const save = async (state: string) => {
    const { session_id } = await project.session({ headless: true, profile: { name: 'ann', save_changes: true } })
    server.host.agentOf(session_id as SessionId).profile = (reply) => reply.send(state)
    assert.equal((await project.call('DELETE', `/browsers/${session_id}`)).status, 204)
  }

  await save('first')
  server.clock.advance(1)
  await save('second')
  assert.equal((await names()).length, 1)
  assert.equal(await (await get(project, '/profiles/ann/download')).text(), 'second')
  const { session_id } = await project.session({ headless: true, profile: { name: 'ann' } })
  assert.deepEqual(server.host.agentOf(session_id as SessionId).loaded, [{ state: 'second', tabs: 'restore' }])

  await blobs.write('profile-left-by-a-crash', [Buffer.from('x')] as unknown as AsyncIterable<Uint8Array>)
  server.clock.advance(2 * 60 * 60)
  await server.services.blobSweep.sweep()
  assert.equal((await names()).length, 1)
  assert.equal(await (await get(project, '/profiles/ann/download')).text(), 'second')
})

test('a blob that is missing in the bucket is a 404, not a 500', async () => {
  const project = await server.project()
  const form = new FormData()
  const manifest = JSON.stringify({ manifest_version: 3, name: 'test', version: '1.0' })
  form.set('file', new Blob([new Uint8Array(zip({ name: 'manifest.json', content: manifest }))]), 'it.zip')
  const headers = { authorization: `Bearer ${project.key}` }
  const { id } = (await (
    await fetch(`${server.url}/extensions`, { method: 'POST', headers, body: form })
  ).json()) as Extension
  for (const name of await names()) if (name.startsWith('extension-')) await blobs.remove(name)

  assert.equal((await get(project, `/extensions/${id}`)).status, 404)
})
