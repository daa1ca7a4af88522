import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type {
  ConnectionEvent,
  LoginResponse,
  ManagedAuth,
  TimelineEvent,
} from '@berth/contract/managed-auth/connection.ts'
import type { OrgLimits } from '@berth/contract/organizations/organization-endpoints.ts'
import type { Profile } from '@berth/contract/profiles/profile.ts'
import { FakeLogin, type FakeLoginSite } from '../../testing/fake-login.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

const password = 'planted-p@ss'

/** User name and password on one page, then a code by SMS. */
const withCode: FakeLoginSite = {
  first: 'login',
  pages: {
    login: {
      state: 'form',
      fields: [
        { name: 'email', purpose: 'email' },
        { name: 'password', purpose: 'password' },
      ],
      choices: [{ kind: 'sso', label: 'Continue with Acme', provider: 'acme' }],
      submit: (values) => (values.password === password ? 'code' : 'refused'),
      choose: () => 'home',
    },
    refused: {
      state: 'form',
      fields: [
        { name: 'email', purpose: 'email' },
        { name: 'password', purpose: 'password', is_rejected: true },
      ],
      about: { problem: 'credentials_invalid', website_error: 'Wrong password' },
      submit: (values) => (values.password === password ? 'code' : 'refused'),
    },
    code: {
      state: 'form',
      fields: [{ name: 'code', purpose: 'sms_code' }],
      submit: ({ code }) => (code === '123456' ? 'home' : 'code'),
    },
    home: { state: 'logged_in' },
  },
  check: () => 'yes',
}

interface Failure {
  readonly code: string
  readonly message: string
  readonly existing_id?: string
}

const base = { domain: 'site.test', profile_name: 'ann' }

async function connect(project: TestProject, more: object = {}): Promise<ManagedAuth> {
  const { status, body } = await project.call<ManagedAuth>('POST', '/auth/connections', { ...base, ...more })
  assert.equal(status, 201, JSON.stringify(body))
  return body
}

const login = async (project: TestProject, id: string, body?: object) =>
  (await project.call<LoginResponse>('POST', `/auth/connections/${id}/login`, body)).body
const read = async (project: TestProject, id: string) =>
  (await project.call<ManagedAuth>('GET', `/auth/connections/${id}`)).body
const submit = (project: TestProject, id: string, body: object) =>
  project.call<{ accepted: boolean } & Failure>('POST', `/auth/connections/${id}/submit`, body)

async function until(project: TestProject, id: string, isSo: (state: ManagedAuth) => boolean): Promise<ManagedAuth> {
  for (let look = 0; look < 500; look += 1) {
    const state = await read(project, id)
    if (isSo(state)) return state
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`never so: ${JSON.stringify(await read(project, id))}`)
}

/** Hosts the site for one test, and tells which browsers it had. */
function host(site: FakeLoginSite): FakeLogin[] {
  const made: FakeLogin[] = []
  server.host.login = () => {
    const browser = new FakeLogin(site)
    made.push(browser)
    return browser
  }
  return made
}

test('a login asks for what is missing, in both spellings, and ends with a profile and a credential', async () => {
  const browsers = host(withCode)
  const project = await server.project()
  const connection = await connect(project)
  assert.deepEqual(
    [connection.status, connection.flow_status, connection.can_reauth_reason],
    ['NEEDS_AUTH', null, 'no_prior_successful_login'],
  )

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

export type Events = ConnectionEvent | TimelineEvent | OrgLimits
