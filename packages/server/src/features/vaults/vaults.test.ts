import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { OrgLimits } from '@berth/contract/organizations/organization-endpoints.ts'
import type { Vault, VaultEncryptionKey } from '@berth/contract/vaults/vault.ts'
import type { VaultItem } from '@berth/contract/vaults/vault-item.ts'
import { sql } from 'kysely'
import { type ApiAnswer, TestServer } from '../../testing/server-test.ts'

const server = await TestServer.open()
const sibling = await server.sibling('sibling')
after(async () => {
  await sibling.close()
  await server.close()
})

interface Failure {
  readonly code: string
  readonly message: string
}

test('a vault is created once, found by id and name, listed and deleted', async () => {
  const project = await server.project()

  const { status, body: made } = await project.call<Vault>('POST', '/vaults', { name: 'logins' })
  assert.equal(status, 201)
  const again = await project.call<Vault>('POST', '/vaults', { name: 'logins' })
  assert.deepEqual([again.status, again.body], [200, made])
  server.clock.advance(1)
  const { body: other } = await project.call<Vault>('POST', '/vaults', { name: 'Other.1' })
  const names = async (query: string) =>
    (await project.call<Vault[]>('GET', `/vaults?${query}`)).body.map(({ name }) => name)

  assert.deepEqual((await project.call('GET', `/vaults/${made.id}`)).body, made)
  assert.deepEqual((await project.call('GET', '/vaults/logins')).body, made)
  assert.deepEqual(await names(''), ['Other.1', 'logins'])
  assert.deepEqual(await names('query=OTHER'), ['Other.1'])
  assert.deepEqual(await names(`query=${other.id}`), ['Other.1'])
  assert.deepEqual(await names('limit=1&offset=1'), ['logins'])
  assert.equal((await project.call('DELETE', '/vaults/logins')).status, 204)
  for (const [method, path] of [
    ['GET', '/vaults/logins'],
    ['DELETE', '/vaults/logins'],
    ['GET', '/vaults/logins/encryption_key'],
    ['GET', '/vaults/logins/items'],
  ] as const) {
    const gone = await project.call<Failure>(method, path)
    assert.deepEqual([gone.status, gone.body.code], [404, 'vault_not_found'], path)
  }
})

test('of twenty upserts of one name on two servers one creates', async () => {
  const project = await server.project()

  const answers = await Promise.all(
    Array.from({ length: 20 }, (_value, index) =>
      project.on(index % 2 ? sibling : server).call<Vault>('POST', '/vaults', { name: 'one' }),
    ),
  )

  assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1)
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [...Array(19).fill(200), 201])
})

test('the vaults of the organization are counted', async () => {
  const project = await server.project()
  const used = async () => (await project.call<OrgLimits>('GET', '/org/limits')).body.vaults_used
  assert.equal(await used(), 0)

  await project.call('POST', '/vaults', { name: 'a' })
  await project.call('POST', '/vaults', { name: 'a' })
  await project.call('POST', '/vaults', { name: 'b' })
  await (await server.project()).call('POST', '/vaults', { name: 'c' })

  assert.equal(await used(), 2)
  await project.call('DELETE', '/vaults/a')
  assert.equal(await used(), 1)
})

test('an invalid name is rejected', async () => {
  const project = await server.project()

  for (const name of ['', 'a b', 'ä', 'x'.repeat(256), 'vlt0123456789abcdefghijk', 1, null]) {
    const { status, body } = await project.call<Failure>('POST', '/vaults', { name })
    assert.equal(status, 400, String(name))
    assert.match(body.message, /^name: must/)
  }
  assert.match((await project.call<Failure>('POST', '/vaults', { name: 'x', kind: 1 })).body.message, /kind/)
})

test('a vault has one key for encrypted values, even with concurrent first requests', async () => {
  const project = await server.project()
  await project.call('POST', '/vaults', { name: 'keys' })

  const answers = await Promise.all(
    Array.from({ length: 10 }, (_value, index) =>
      project.on(index % 2 ? sibling : server).call<VaultEncryptionKey>('GET', '/vaults/keys/encryption_key'),
    ),
  )

  const [key] = answers.map(({ body }) => body)
  assert.deepEqual([key?.alg, key?.enc, key?.jwk.kty, key?.jwk.crv], ['ECDH-ES', 'A256GCM', 'EC', 'P-256'])
  for (const { status, body } of answers) assert.deepEqual([status, body], [200, key])
  assert.ok(!('d' in (key?.jwk ?? {})))
})

test('a session is created with vaults of its project, and returns them as they were named', async () => {
  const project = await server.project()
  const { body: one } = await project.call<Vault>('POST', '/vaults', { name: 'one' })
  await project.call('POST', '/vaults', { name: 'two' })
  const stranger = await server.project()

  const session = await project.session({ headless: true, vaults: [{ id: one.id }, { name: 'two' }, { name: 'one' }] })
  assert.deepEqual(session.vaults, [{ id: one.id }, { name: 'two' }])
  const { body: read } = await project.call('GET', `/browsers/${session.session_id}`)
  assert.deepEqual(read.vaults, session.vaults)
  assert.equal((await project.session()).vaults, undefined)

  for (const [status, vaults, by] of [
    [404, [{ id: one.id }], stranger],
    [404, [{ name: 'one' }], stranger],
    [404, [{ id: 'one' }], project],
    [404, [{ name: one.id }], project],
    [400, [{}], project],
    [400, [{ id: one.id, name: 'one' }], project],
    [400, Array.from({ length: 21 }, () => ({ name: 'one' })), project],
  ] as const) {
    const refused = await by.call<Failure>('POST', '/browsers', { headless: true, vaults })
    assert.equal(refused.status, status, JSON.stringify(vaults))
  }
  const changed = await project.call<Failure>('PATCH', `/browsers/${session.session_id}`, { vaults: [] })
  assert.deepEqual((await project.call('GET', `/browsers/${session.session_id}`)).body.vaults, session.vaults)
  assert.ok([200, 400].includes(changed.status))
})

test('no row and no response contains a value, however it was submitted', async () => {
  const project = await server.project()
  const planted = ['planted-first', 'planted-changed', 'planted-collected', 'PLANTEDSEED5QW7A', 'planted-client']
  const [first, changed, collected, seed, client] = planted
  const item = '/vaults/leaky/items/login'
  const fields = [
    { name: 'password', type: 'password', value: first },
    { name: 'code', type: 'totp', value: seed },
    { name: 'note', type: 'text' },
  ]
  await project.call('POST', '/vaults', { name: 'leaky' })
  const credentials = { client_id: 'id', client_secret: client }
  const answers: ApiAnswer<object>[] = [
    await project.call<Partial<VaultItem>>('PUT', item, { type: 'credential', spec: { fields } }),
    await project.call<Partial<VaultItem>>('PATCH', item, {
      type: 'credential',
      version: 1,
      spec: { fields: { password: { value: changed } } },
    }),
    await project.call<object>('POST', '/vault-provider-configs', { provider: 'link', name: 'leaky', credentials }),
  ]
  const { action }: Partial<VaultItem> = answers[1]?.body ?? {}
  const url = action?.url ?? ''
  const form = await fetch(url, { method: 'POST', body: new URLSearchParams({ note: collected ?? '' }) })
  assert.equal(form.status, 200)
  answers.push(
    await project.call<object>('GET', `${item}/events`),
    await project.call<object>('GET', '/vaults/leaky/items'),
  )

  const texts = answers.map(({ body }) => JSON.stringify(body))
  texts.push(await form.text())
  const tables = ['vaults', 'vault_items', 'vault_collections', 'vault_item_events', 'vault_provider_configs'] as const
  for (const table of tables) {
    const { rows } = await sql<{ row: string }>`select t::text as row from ${sql.table(table)} t`.execute(
      server.database,
    )
    if (table !== 'vault_collections') assert.ok(rows.length > 0, table)
    texts.push(...rows.map(({ row }) => row))
  }
  for (const value of planted) {
    const spellings = [value, Buffer.from(value).toString('hex'), Buffer.from(value).toString('base64').slice(0, -4)]
    assert.deepEqual(
      texts.filter((text) => spellings.some((spelling) => text.includes(spelling))),
      [],
    )
  }
})
