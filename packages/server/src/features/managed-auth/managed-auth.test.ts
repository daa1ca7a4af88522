import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Profile } from '@berth/contract/profiles/profile.ts'
import { TestServer } from '../../testing/server-test.ts'
import { connect, host, login, password, submit, until, withCode } from './testing/logins.ts'

const server = await TestServer.open()
after(() => server.close())

test('a login asks for missing values, in both forms, and ends with a profile and a credential', async () => {
  const browsers = host(server, withCode)
  const project = await server.project()
  const connection = await connect(project)
  assert.deepEqual(
    [connection.status, connection.flow_status, connection.can_reauth_reason],
    ['NEEDS_AUTH', null, 'no_prior_successful_login'],
  )
  assert.deepEqual([connection.health_checks, connection.health_check_unavailable_reason], [true, 'no_auth_check_url'])

  const begun = await login(project, connection.id)
  assert.deepEqual([begun.id, begun.flow_type], [connection.id, 'LOGIN'])
  assert.equal(begun.hosted_url, `${server.url}/login/${connection.id}?code=${begun.handoff_code}`)
  const asked = await until(project, connection.id, ({ flow_step }) => flow_step === 'AWAITING_INPUT')

  assert.deepEqual(
    asked.fields?.map(({ id, ref, type, reason }) => [id, ref, type, reason]),
    [
      ['f0', 'email', 'identifier', 'missing'],
      ['f1', 'password', 'password', 'missing'],
    ],
  )
  assert.deepEqual(
    asked.discovered_fields?.map(({ name, type, selector }) => [name, type, selector]),
    [
      ['email', 'email', '#email'],
      ['password', 'password', '#password'],
    ],
  )
  assert.deepEqual(
    asked.choices?.map(({ id, type }) => [id, type]),
    [['c0', 'sso_provider']],
  )
  assert.deepEqual(asked.pending_sso_buttons, [
    { selector: '//button[1]', provider: 'acme', label: 'Continue with Acme' },
  ])
  assert.ok(asked.live_view_url?.includes('/live?jwt='))
  assert.ok(asked.browser_session_id)

  const wrong = await submit(project, connection.id, {
    interaction_id: asked.interaction_id,
    field_values: { f0: 'ann@site.test', f1: 'wrong' },
  })
  assert.deepEqual([wrong.status, wrong.body], [202, { accepted: true }])
  const refused = await until(project, connection.id, ({ website_error }) => website_error === 'Wrong password')
  assert.deepEqual(
    refused.fields?.map(({ reason }) => reason),
    ['rejected', 'rejected'],
  )
  assert.equal((await submit(project, connection.id, { fields: { email: 'ann@site.test', password } })).status, 202)
  const second = await until(project, connection.id, ({ fields }) => fields?.[0]?.type === 'code')
  assert.equal((await submit(project, connection.id, { field_values: { f0: '123456' } })).status, 202)
  const done = await until(project, connection.id, ({ flow_status }) => flow_status === 'SUCCESS')

  assert.notEqual(second.interaction_id, asked.interaction_id)
  assert.deepEqual(
    [done.status, done.flow_step, done.post_login_url, done.hosted_url, done.live_view_url, done.browser_session_id],
    ['AUTHENTICATED', 'COMPLETED', 'https://site.test/home', null, null, null],
  )
  assert.deepEqual([done.can_reauth, done.can_reauth_reason], [false, 'requires_sms_code'])
  assert.ok(!('health_check_unavailable_reason' in done))
  assert.deepEqual(done.credential, { name: 'ann site.test' })
  const { body: credential } = await project.call<{ value_keys: string[] }>('GET', '/credentials/ann%20site.test')
  assert.deepEqual(credential.value_keys, ['email', 'password'])
  const { body: profile } = await project.call<Profile>('GET', '/profiles/ann')
  assert.ok(profile.updated_at)
  assert.deepEqual(
    browsers[0]?.typed.map(({ name }) => name),
    ['email', 'password', 'email', 'password', 'code'],
  )
  const row = await server.row(asked.browser_session_id ?? '')
  assert.deepEqual([row.state, row.profile_save_changes], ['deleted', true])
  assert.equal((await submit(project, connection.id, { field_values: { f0: '1' } })).body.code, 'no_active_flow')
})
