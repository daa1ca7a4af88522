import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Project } from '@berth/contract/projects/project.ts'
import { newApiKey } from '../../access/secrets.ts'
import { TestServer } from '../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

interface Context {
  readonly principal: { readonly type: string; readonly id: string }
  readonly organization: { readonly id: string }
  readonly authorization: Readonly<Record<'credential_scope' | 'effective_scope', { project_id: string | null }>>
}

test('the context names the key, the organization, and the project that the request has chosen', async () => {
  const owner = await server.project()
  const { body: other } = await owner.call<Project>('POST', '/org/projects', { name: 'other' })
  const key = newApiKey()
  await owner.addKey(key, owner.id)
  const scopes = async (init: { key?: string; headers?: Record<string, string> }) => {
    const { status, body } = await owner.call<Context>('GET', '/auth/context', undefined, init)
    if (status !== 200) return status
    assert.deepEqual(body.organization, { id: owner.organizationId })
    return [body.authorization.credential_scope.project_id, body.authorization.effective_scope.project_id]
  }

  assert.deepEqual(await scopes({}), [null, null], 'the default project is no choice')
  assert.deepEqual(await scopes({ headers: { 'X-Kernel-Project': 'other' } }), [null, other.id])
  assert.deepEqual(await scopes({ headers: { 'X-Kernel-Project': ' ' } }), [null, null])
  assert.deepEqual(await scopes({ key }), [owner.id, owner.id])
  assert.equal(await scopes({ key, headers: { 'X-Kernel-Project-Id': other.id } }), 403)
  assert.equal(await scopes({ headers: { 'X-Kernel-Project-Id': 'other' } }), 404, 'this header takes no name')
  assert.equal(await scopes({ key: 'sk_unknown' }), 401)
})

test('the principal is the key itself', async () => {
  const owner = await server.project()
  const { body: keys } = await owner.call<{ id: string }[]>('GET', '/org/api_keys')

  const { body } = await owner.call<Context>('GET', '/auth/context')

  assert.deepEqual(body.principal, { type: 'api_key', id: keys[0]?.id })
})
