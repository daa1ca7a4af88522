import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newId } from '@berth/contract/common/ids.ts'
import { TestServer } from '../testing/server-test.ts'
import { newApiKey } from './secrets.ts'

const server = await TestServer.open()
after(() => server.close())

test('a key of the whole organization works in the default project unless a header names another', async () => {
  const project = await server.project()
  const other = await addProject(project.organizationId, 'Zweites Projekt ü')
  await project.session({ name: 'here' })

  const status = async (headers: Record<string, string>) =>
    (await project.call('GET', '/browsers/here', undefined, { headers })).status

  assert.equal(await status({}), 200)
  assert.equal(await status({ 'X-Kernel-Project-Id': project.id }), 200)
  assert.equal(await status({ 'X-Kernel-Project': project.id }), 200)
  assert.equal(await status({ 'X-Kernel-Project-Id': other }), 404)
  const named = Buffer.from('Zweites Projekt ü').toString('latin1')
  assert.equal(
    (await project.call('GET', '/browsers', undefined, { headers: { 'X-Kernel-Project': named } })).status,
    200,
  )
})

test('a project that is archived, unknown or of another organization is not found', async () => {
  const project = await server.project()
  const stranger = await server.project()
  const archived = await addProject(project.organizationId, 'old', server.clock.now())

  for (const id of [stranger.id, archived, newId('project', server.clock.now())]) {
    const { status, body } = await project.call<{ code: string }>('GET', '/browsers', undefined, {
      headers: { 'X-Kernel-Project-Id': id },
    })
    assert.equal(status, 404)
    assert.equal(body.code, 'project_not_found')
  }
})

test('two headers must name one project', async () => {
  const project = await server.project()
  const other = await addProject(project.organizationId, 'other')

  const same = { 'X-Kernel-Project-Id': project.id, 'X-Kernel-Project': 'Default' }
  const different = { 'X-Kernel-Project-Id': other, 'X-Kernel-Project': 'Default' }

  assert.equal((await project.call('GET', '/browsers', undefined, { headers: same })).status, 200)
  assert.equal((await project.call('GET', '/browsers', undefined, { headers: different })).status, 400)
})

test('a key of one project is limited to it', async () => {
  const project = await server.project()
  const other = await addProject(project.organizationId, 'mine')
  const key = newApiKey()
  await project.addKey(key, other)
  await project.session({ name: 'in-default' })

  assert.equal((await project.call('GET', '/browsers/in-default', undefined, { key })).status, 404)
  assert.equal(
    (await project.call('GET', '/browsers', undefined, { key, headers: { 'X-Kernel-Project': 'mine' } })).status,
    200,
  )
  assert.equal(
    (await project.call('GET', '/browsers', undefined, { key, headers: { 'X-Kernel-Project': 'Default' } })).status,
    403,
  )
})

test('a deleted key is invalid at most one second after its last use', async () => {
  const project = await server.project()
  assert.equal((await project.call('GET', '/browsers')).status, 200)
  await server.database
    .updateTable('api_keys')
    .set({ deleted_at: server.clock.now() })
    .where('organization_id', '=', project.organizationId)
    .execute()
  server.clock.advance(1)

  assert.equal((await project.call('GET', '/browsers')).status, 401)
})

test('the key is checked before the body is read', async () => {
  const project = await server.project()

  const { status } = await project.call('POST', '/browsers', { name: 'x'.repeat(20_000_000) }, { key: 'sk_wrong' })

  assert.equal(status, 401)
})

async function addProject(
  organizationId: Awaited<ReturnType<TestServer['project']>>['organizationId'],
  name: string,
  archivedAt: Date | null = null,
) {
  const id = newId('project', server.clock.now())
  await server.database
    .insertInto('projects')
    .values({
      id,
      organization_id: organizationId,
      name,
      is_default: false,
      archived_at: archivedAt,
      created_at: server.clock.now(),
    })
    .execute()
  return id
}
