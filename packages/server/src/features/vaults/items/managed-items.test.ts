import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { SessionId } from '@berth/contract/common/ids.ts'
import type { ManagedAuth } from '@berth/contract/managed-auth/connection.ts'
import type { VaultItem } from '@berth/contract/vaults/vault-item.ts'
import { type TestProject, TestServer } from '../../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

const path = '/vaults/v/items/login'

interface Failure {
  readonly code: string
  readonly message: string
}

async function connection(project: TestProject, more: object): Promise<string> {
  const body = { domain: 'site.test', profile_name: 'ann', ...more }
  return (await project.call<ManagedAuth>('POST', '/auth/connections', body)).body.id
}

const put = (project: TestProject, id: string, more: object = {}, key = 'login') =>
  project.call<VaultItem & Failure>('PUT', `/vaults/v/items/${key}`, {
    type: 'credential',
    spec: { provider: 'managed_auth', connection_id: id, ...more },
  })

async function projectWithCredential(): Promise<TestProject> {
  const project = await server.project()
  await project.call('POST', '/vaults', { name: 'v' })
  await project.call('POST', '/credentials', {
    name: 'stored',
    domain: 'site.test',
    values: { email: 'ann@site.test', password: 'planted', tenant: 'acme', totp_secret: 'planted-seed' },
    totp_secret: 'GEZDGNBVGY3TQOJQ',
  })
  return project
}

test('an item of a connection fills in its saved credential, and reveals only which values exist', async () => {
  const project = await projectWithCredential()
  const id = await connection(project, { credential: { name: 'stored' }, allowed_domains: ['login.test'] })

  const { status, body } = await put(project, id, { description: 'Shop' })
  assert.equal(status, 200, JSON.stringify(body))
  assert.deepEqual(body.spec, { provider: 'managed_auth', connection_id: id, description: 'Shop' })
  assert.deepEqual(body.state, {
    provider: 'managed_auth',
    status: 'ready',
    fields: {
      email: { type: 'email' },
      password: { type: 'password' },
      tenant: { type: 'text' },
      totp: { type: 'totp' },
    },
  })
  assert.deepEqual(
    [body.version, body.action, body.available_operations.map(({ type }) => type)],
    [1, undefined, ['fill']],
  )
  const { body: list } = await project.call<VaultItem[]>('GET', '/vaults/v/items')
  assert.deepEqual(list[0]?.state, { provider: 'managed_auth', status: 'ready' })
  assert.deepEqual((await put(project, id, { description: 'Shop' })).body.id, body.id)
  assert.equal((await put(project, id, { description: 'Other' })).body.code, 'vault_item_exists')
  const change = { type: 'credential', version: 1, spec: { fields: { password: { value: 'x' } } } }
  assert.equal((await project.call('PATCH', path, change)).status, 409)
  assert.equal((await project.call('POST', `${path}/operations`, { type: 'collect' })).status, 409)

  const { session_id } = await project.session({ headless: true, vaults: [{ name: 'v' }] })
  const agent = server.host.agentOf(session_id as SessionId)
  const foundOn = (host: string) => {
    agent.findFormFields = async ({ selectors }) => ({
      outcome: 'found',
      fill_id: 'fill',
      page_url: `https://${host}/`,
      origins: selectors.map(() => `https://${host}`),
    })
  }
  const fill = (field: string) =>
    project.call<Failure & { status: string }>('POST', `${path}/operations`, {
      type: 'fill',
      browser_id: session_id,
      fields: [{ field, selector: '#a' }],
    })
  foundOn('evil.test')
  assert.equal((await fill('password')).body.code, 'destination_denied')
  foundOn('www.login.test')
  for (const field of ['password', 'totp']) assert.equal((await fill(field)).body.status, 'completed')
  assert.deepEqual(agent.filled[0]?.values, ['planted'])
  assert.match(agent.filled[1]?.values[0] ?? '', /^\d{6}$/)
  assert.equal((await fill('totp_secret')).body.code, 'field_unavailable')
})

test('an item reports why its connection has no credential, and a new one requires a credential', async () => {
  const project = await projectWithCredential()
  const without = await connection(project, { profile_name: 'none' })
  await project.call('POST', '/org/credential_providers', { provider_type: 'onepassword', name: 'op', token: 'token' })
  const external = await connection(project, { profile_name: 'op', credential: { provider: 'op', auto: true } })
  for (const [of, status, code] of [
    ['acn000000000000000000000', 404, 'auth_connection_not_found'],
    [without, 409, 'auth_connection_not_usable'],
    [external, 409, 'auth_connection_not_usable'],
  ] as const) {
    const refused = await put(project, of)
    assert.deepEqual([refused.status, refused.body.code], [status, code])
  }
  const stranger = await server.project()
  await stranger.call('POST', '/vaults', { name: 'v' })
  const id = await connection(project, { credential: { name: 'stored' } })
  assert.equal((await put(stranger, id)).status, 404, "another project's connection is none")
  await put(project, id)
  const state = async () => (await project.call<VaultItem>('GET', path)).body

  await project.call('DELETE', '/credentials/stored')
  const noCredential = await state()
  await project.call('DELETE', `/auth/connections/${id}`)
  const gone = await state()

  assert.deepEqual(noCredential.state, {
    provider: 'managed_auth',
    status: 'unavailable',
    status_reason: 'no_credential',
  })
  assert.deepEqual(gone.state, {
    provider: 'managed_auth',
    status: 'unavailable',
    status_reason: 'connection_not_found',
  })
  assert.deepEqual(gone.available_operations, [])
  assert.equal((await put(project, id)).status, 200, 'the same request finds the item in any state')
})
