import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { ProjectId } from '@berth/contract/common/ids.ts'
import type { VaultProviderConfig } from '@berth/contract/vaults/provider-config-endpoints.ts'
import { newApiKey } from '../../../access/secrets.ts'
import { type TestProject, TestServer } from '../../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

interface Failure {
  readonly code: string
  readonly message: string
}

type Answer = VaultProviderConfig & Failure & { readonly publishable_key?: string; readonly test_mode?: boolean }

const path = '/vault-provider-configs'
const link = {
  provider: 'link',
  name: 'ours',
  credentials: { client_id: 'id', client_secret: 'planted-secret', publishable_key: 'pk' },
}

const create = (owner: TestProject, body: unknown = link) => owner.call<Answer>('POST', path, body)

test('a config is created, read by id and name, changed and deleted, and its secret is never returned', async () => {
  const owner = await server.project()

  const made = await create(owner)
  assert.deepEqual([made.status, made.body.publishable_key, made.body.client_id], [201, 'pk', 'id'])
  const card = await create(owner, {
    provider: 'agentcard',
    name: 'cards',
    credentials: { client_id: 'id_test_1', client_secret: 'planted-secret' },
  })
  assert.deepEqual([card.status, card.body.test_mode, card.body.publishable_key], [201, true, undefined])
  const changed = await owner.call<Answer>('PATCH', '/vault-provider-configs/ours', {
    name: 'theirs',
    credentials: { client_secret: 'planted-other', publishable_key: 'pk2' },
  })
  assert.deepEqual([changed.body.name, changed.body.publishable_key], ['theirs', 'pk2'])
  const answers = [
    await owner.call<Answer>('GET', `${path}/${made.body.id}`),
    await owner.call<Answer>('GET', '/vault-provider-configs/theirs'),
    await owner.call<Answer>('GET', '/vault-provider-configs'),
  ]
  for (const { status, body } of answers) {
    assert.equal(status, 200)
    assert.doesNotMatch(JSON.stringify(body), /planted/)
  }
  const { sealed_client_secret: sealed, id } = await server.database
    .selectFrom('vault_provider_configs')
    .selectAll()
    .where('id', '=', made.body.id as never)
    .executeTakeFirstOrThrow()
  const context = `vault provider config ${id}`
  assert.equal(
    await server.services.secrets.unsealForOrganization(owner.organizationId, sealed, context),
    'planted-other',
  )

  assert.equal((await owner.call('DELETE', '/vault-provider-configs/theirs')).status, 204)
  for (const method of ['GET', 'PATCH', 'DELETE']) {
    const gone = await owner.call<Failure>(method, `${path}/theirs`, method === 'PATCH' ? {} : undefined)
    assert.deepEqual([gone.status, gone.body.code], [404, 'vault_provider_config_not_found'])
  }
})

test('names are unique, invalid values are reported, and writes need a key of the organization', async () => {
  const owner = await server.project()
  await create(owner)
  await create(owner, { ...link, name: 'second' })
  const answers = await Promise.all(Array.from({ length: 10 }, () => create(owner, { ...link, name: 'third' })))
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, ...Array.from({ length: 9 }, () => 409)])
  const renamed = await owner.call<Failure>('PATCH', `${path}/second`, { name: 'ours' })
  assert.deepEqual([renamed.status, renamed.body.code], [409, 'vault_provider_config_name_taken'])

  for (const [field, body] of [
    ['provider', { ...link, provider: 'visa' }],
    ['name', { ...link, name: ' ' }],
    ['credentials.client_secret', { ...link, credentials: { client_id: 'x' } }],
    ['credentials', { ...link, provider: 'agentcard' }],
  ] as const) {
    const refused = await create(owner, body)
    assert.equal(refused.status, 400, field)
    assert.ok(refused.body.message.startsWith(field), refused.body.message)
    assert.doesNotMatch(refused.body.message, /planted/)
  }

  const key = newApiKey()
  await owner.addKey(key, owner.id as ProjectId)
  for (const [method, rest, body] of [
    ['POST', '', { ...link, name: 'x' }],
    ['PATCH', '/ours', {}],
    ['DELETE', '/ours', undefined],
  ] as const) {
    const refused = await owner.call<Failure>(method, `${path}${rest}`, body, { key })
    assert.deepEqual([refused.status, refused.body.code], [403, 'forbidden'], method)
  }
  assert.equal((await owner.call('GET', `${path}/ours`, undefined, { key })).status, 200)
})
