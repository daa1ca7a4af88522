import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { FakeLoginSite } from '../../testing/fakes/fake-login.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'
import { ConnectServer } from '../../testing/services/connect-server.ts'
import { connect, host, isAsking, isOver, login, password, simple, submit, until } from './testing/logins.ts'

const onePassword = await ConnectServer.open()
onePassword.items.set('vaulta', [
  { id: 'item0', title: 'Other', urls: [{ href: 'https://evilsite.test' }] },
  {
    id: 'item1',
    title: 'Site',
    urls: [{ href: '*.site.test' }, { href: 'https://www.site.test/login' }],
    fields: [
      { label: 'username', purpose: 'USERNAME', type: 'STRING', value: 'ann' },
      { label: 'password', purpose: 'PASSWORD', type: 'CONCEALED', value: password },
      { label: 'tenant', type: 'STRING', value: 'acme' },
      { label: 'one-time password', type: 'OTP', value: 'otpauth://totp/Site?secret=GEZDGNBVGY3TQOJQ&digits=8' },
    ],
  },
])
const server = await TestServer.open({ onePassword: { connectUrl: onePassword.url, limitMilliseconds: 60_000 } })
after(async () => {
  await server.close()
  await onePassword.close()
})

const site: FakeLoginSite = {
  first: 'login',
  pages: {
    ...simple.pages,
    login: {
      state: 'form',
      fields: [
        { name: 'tenant', purpose: 'other' },
        { name: 'user', purpose: 'username' },
        { name: 'pw', purpose: 'password' },
      ],
      submit: ({ pw }) => (pw === password ? 'code' : 'refused'),
    },
    code: {
      state: 'form',
      fields: [{ name: 'code', purpose: 'totp' }],
      submit: ({ code = '' }) => (/^\d{8}$/.test(code) ? 'home' : 'code'),
    },
  },
}

async function withProvider(token = 'good-token'): Promise<TestProject> {
  const project = await server.project()
  const provider = { provider_type: 'onepassword', name: 'op', token }
  assert.equal((await project.call('POST', '/org/credential_providers', provider)).status, 201)
  return project
}

for (const [how, reference] of [
  ['by its path', { provider: 'op', path: 'Work/Site' }],
  ['by the domain', { provider: 'op', auto: true }],
] as const) {
  test(`an item of a provider, found ${how}, supplies the values and codes of a login, and nothing is stored`, async () => {
    const browsers = host(server, site)
    const project = await withProvider()
    const { id, credential, can_reauth_reason } = await connect(project, { credential: reference })
    assert.deepEqual([credential, can_reauth_reason], [reference, 'no_prior_successful_login'])

    await login(project, id)
    const done = await until(project, id, isOver)

    assert.deepEqual(
      [done.flow_status, done.can_reauth, done.can_reauth_reason, done.credential],
      ['SUCCESS', true, 'external_credential', reference],
      JSON.stringify(done),
    )
    const typed = browsers.flatMap(({ typed }) => typed)
    assert.deepEqual(
      typed.slice(0, 3).map(({ value }) => value),
      ['acme', 'ann', password],
    )
    assert.equal(typed[3]?.value.length, 8)
    assert.deepEqual((await project.call('GET', '/credentials')).body, [])
  })
}

test('without values from the provider, a person completes the login, and the values are not stored either', async () => {
  host(server, simple)
  const project = await withProvider('bad-token')
  const { id } = await connect(project, { credential: { provider: 'op', auto: true } })
  await login(project, id)
  const { fields } = await until(project, id, isAsking)

  await submit(project, id, { fields: { username: 'ann', password } })
  const done = await until(project, id, isOver)

  assert.equal(fields?.length, 2)
  assert.deepEqual([done.flow_status, done.can_reauth_reason], ['SUCCESS', 'requires_customer_input'])
  assert.deepEqual((await project.call('GET', '/credentials')).body, [])
})

test('a provider without an item is not used', async () => {
  host(server, simple)
  const project = await withProvider()
  const { id } = await connect(project, { credential: { provider: 'op' } })
  await login(project, id)

  const { fields } = await until(project, id, isAsking)

  assert.equal(fields?.length, 2)
  await project.call('DELETE', `/auth/connections/${id}`)
})
