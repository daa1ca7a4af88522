import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { AuthConnectionId, AuthFlowId } from '@berth/contract/common/ids.ts'
import type { ManagedAuth, TimelineEvent } from '@berth/contract/managed-auth/connection.ts'
import type { OrgLimits } from '@berth/contract/organizations/organization-endpoints.ts'
import type { FakeLogin, FakeLoginSite } from '../../testing/fakes/fake-login.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'
import {
  connect,
  type Failure,
  host,
  isAsking,
  isOver,
  loggedIn,
  login,
  password,
  read,
  simple,
  submit,
  until,
  withCode,
} from './testing/logins.ts'

const server = await TestServer.open({ limits: { maxAuthConnections: 2, minHealthCheckSeconds: 600 } })
after(() => server.close())

const never = new AbortController().signal

/** Checks the connection, and returns the flow that the check started. */
async function check(id: string): Promise<AuthFlowId | undefined> {
  await server.services.authHealthChecks.check(id as AuthConnectionId, never)
  const flow = await server.database
    .selectFrom('auth_flows')
    .select('id')
    .where('connection_id', '=', id as AuthConnectionId)
    .where('server_id', 'is', null)
    .executeTakeFirst()
  return flow?.id
}

/** Runs the jobs: the check, and the login that it requests. */
async function checkAndLogIn(project: TestProject, id: string): Promise<ManagedAuth> {
  const flow = await check(id)
  if (flow) await server.services.authHealthChecks.reauthenticate(flow, never)
  return read(project, id)
}

const timeline = async (project: TestProject, id: string, query = '') =>
  (await project.call<TimelineEvent[]>('GET', `/auth/connections/${id}/timeline${query}`)).body

test('a check that finds the profile logged in records it, and an inconclusive one changes nothing', async () => {
  const project = await server.project()
  const { id, last_auth_check_at: first } = await loggedIn(server, project)

  server.clock.advance(60)
  host(server, { ...simple, check: () => 'yes' })
  const yes = await checkAndLogIn(project, id)
  server.clock.advance(60)
  host(server, { ...simple, check: () => 'unknown' })
  const unknown = await checkAndLogIn(project, id)

  assert.deepEqual([yes.status, unknown.status, unknown.flow_type], ['AUTHENTICATED', 'AUTHENTICATED', 'LOGIN'])
  assert.ok(
    String(first) < String(yes.last_auth_check_at) &&
      String(yes.last_auth_check_at) < String(unknown.last_auth_check_at),
  )
  assert.equal(unknown.last_auth_at, unknown.last_auth_check_at)
  const events = await timeline(project, id)
  assert.deepEqual(
    events.map(({ type, status, error_code }) => [type, status, error_code]),
    [
      ['health_check', 'AUTHENTICATED', 'website_error'],
      ['health_check', 'AUTHENTICATED', undefined],
      ['login', 'SUCCESS', undefined],
    ],
  )
  assert.deepEqual((await timeline(project, id, '?type=login')).length, 1)
})

test('a logged-out profile is logged in again with the stored values, once and without a person', async () => {
  const project = await server.project()
  const { id, can_reauth_reason } = await loggedIn(server, project)
  assert.equal(can_reauth_reason, 'has_credential')
  const browsers = host(server, simple)
  server.clock.advance(60)

  const flow = await check(id)
  const between = await read(project, id)
  const both = await Promise.all(
    [1, 2].map(() => server.services.authHealthChecks.reauthenticate(flow as AuthFlowId, never)),
  )
  const after = await read(project, id)

  assert.equal(both.length, 2)
  assert.deepEqual([between.status, between.flow_status, between.flow_type], ['NEEDS_AUTH', 'IN_PROGRESS', 'REAUTH'])
  assert.deepEqual([after.status, after.flow_status, after.flow_type], ['AUTHENTICATED', 'SUCCESS', 'REAUTH'])
  assert.deepEqual(
    browsers.flatMap(({ typed }) => typed).map(({ value }) => value),
    ['ann', password],
  )
  assert.deepEqual(
    (await timeline(project, id)).map(({ type, status, previous_status }) => [type, status, previous_status]),
    [
      ['reauth', 'SUCCESS', undefined],
      ['health_check', 'NEEDS_AUTH', 'AUTHENTICATED'],
      ['login', 'SUCCESS', undefined],
    ],
  )
})

test('a rejected credential is not tried again until it changes', async () => {
  const project = await server.project()
  const { id } = await loggedIn(server, project)
  await project.call('PATCH', '/credentials/stored', { values: { password: 'old' } })
  const browsers = host(server, simple)
  server.clock.advance(60)

  const refused = await checkAndLogIn(project, id)
  server.clock.advance(60)
  const again = await checkAndLogIn(project, id)

  assert.deepEqual(
    [refused.flow_status, refused.error_code, refused.website_error, refused.can_reauth, refused.can_reauth_reason],
    ['FAILED', 'credentials_invalid', 'Wrong password', false, 'no_viable_plans'],
  )
  assert.equal(again.flow_status, 'FAILED')
  assert.deepEqual(
    browsers.flatMap(({ typed }) => typed).map(({ value }) => value),
    ['ann', 'old'],
  )

  await project.call('PATCH', '/credentials/stored', { values: { password } })
  assert.equal((await read(project, id)).can_reauth, true)
  server.clock.advance(60)
  assert.equal((await checkAndLogIn(project, id)).flow_status, 'SUCCESS')
})

test('a login without a person asks nobody', async () => {
  const form = (fields: FakeLoginSite['pages'][string]['fields'], about = {}): FakeLoginSite => ({
    first: 'login',
    pages: { login: { state: 'form', fields: fields ?? [], about } },
    check: () => 'no',
  })
  const cases: readonly (readonly [FakeLoginSite, string])[] = [
    [form([{ name: 'code', purpose: 'sms_code' }]), 'sms_code_required'],
    [form([{ name: 'code', purpose: 'email_code' }]), 'email_code_required'],
    [form([{ name: 'code', purpose: 'totp' }]), 'totp_required'],
    [form([{ name: 'tenant', purpose: 'other' }]), 'customer_input_required'],
    [
      {
        first: 'who',
        pages: { who: { state: 'choice', choices: [{ kind: 'account', label: 'Somebody else' }] } },
        check: () => 'no',
      },
      'account_choice_required',
    ],
    [
      {
        first: 'how',
        pages: { how: { state: 'choice', choices: [{ kind: 'mfa', label: 'Text me', mfa_type: 'sms' }] } },
        check: () => 'no',
      },
      'mfa_required',
    ],
    [{ first: 'push', pages: { push: { state: 'external_action' } }, check: () => 'no' }, 'external_action_required'],
    [{ first: 'x', pages: { x: { state: 'captcha' } }, check: () => 'no' }, 'captcha_blocked'],
    [
      { first: 'x', pages: { x: { state: 'blocked', about: { problem: 'account_locked' } } }, check: () => 'no' },
      'account_locked',
    ],
    [
      {
        first: 'x',
        pages: { x: { state: 'error', about: { problem: 'unsupported_auth_method' } } },
        check: () => 'no',
      },
      'unsupported_auth_method',
    ],
    [{ first: 'x', pages: { x: { state: 'not_found' } }, check: () => 'no' }, 'login_form_not_found'],
  ]
  for (const [site, code] of cases) {
    const project = await server.project()
    const { id } = await loggedIn(server, project)
    host(server, site)
    server.clock.advance(60)

    const failed = await checkAndLogIn(project, id)

    assert.deepEqual(
      [failed.flow_status, failed.error_code, failed.status],
      ['FAILED', code, 'NEEDS_AUTH'],
      JSON.stringify(await timeline(project, id)),
    )
  }
})

test('a page outside of the allowed domains ends the login', async () => {
  const project = await server.project()
  host(server, {
    first: 'x',
    pages: { x: { state: 'error', about: { problem: 'domain_not_allowed', denied_hosts: ['evil.test'] } } },
  })
  const { id } = await connect(project, { allowed_domains: ['*.site.test', 'www.other.test'] })
  await login(project, id)

  const { error_code, error_message, allowed_domains } = await until(project, id, isOver)

  assert.equal(error_code, 'domain_not_allowed')
  assert.match(String(error_message), /evil\.test/)
  assert.deepEqual(allowed_domains, ['site.test', 'other.test'])
})

test('a login that another server is running is not repeated by a job', async () => {
  const project = await server.project()
  const { id } = await loggedIn(server, project)
  const browsers = host(server, simple)
  server.clock.advance(60)
  const flow = await check(id)
  await server.database
    .updateTable('auth_flows')
    .set({ server_id: 'gone' })
    .where('id', '=', flow as AuthFlowId)
    .execute()

  await server.services.authHealthChecks.reauthenticate(flow as AuthFlowId, never)
  const state = await read(project, id)

  assert.deepEqual([state.flow_status, state.error_code], ['FAILED', 'internal_error'])
  assert.equal(browsers.flatMap(({ typed }) => typed).length, 0)
})

test('checks are due by their interval, each for one server, and not without health checks', async () => {
  const project = await server.project()
  const { id } = await loggedIn(server, project, { health_check_interval: 600 })
  const due = async () => {
    const row = await server.database
      .selectFrom('auth_connections')
      .select('next_check_at')
      .where('id', '=', id as AuthConnectionId)
      .executeTakeFirstOrThrow()
    return row.next_check_at && (row.next_check_at.getTime() - server.clock.now().getTime()) / 1000
  }
  assert.equal(await due(), 600)
  server.clock.advance(601)
  await Promise.all([server.services.authHealthChecks.tend(), server.services.authHealthChecks.tend()])
  assert.equal(await due(), 600, 'the next one is a whole interval later')
  await project.call('PATCH', `/auth/connections/${id}`, { health_check_interval: 900 })
  assert.equal(await due(), 299, 'an interval counts from the last check')
  await project.call('PATCH', `/auth/connections/${id}`, { health_checks: false })
  assert.equal(await due(), null)
  await server.services.authHealthChecks.check(id as AuthConnectionId, never)
  assert.equal((await timeline(project, id, '?type=health_check')).length, 0)
})

test('connections have limits, rules and a unique site', async () => {
  const project = await server.project()
  const first = await connect(project)
  const create = (body: object) =>
    project.call<Failure & ManagedAuth>('POST', '/auth/connections', { domain: 'b.test', profile_name: 'b', ...body })

  const same = await create({ domain: 'SITE.test', profile_name: 'ann' })
  assert.deepEqual([same.status, same.body.code, same.body.existing_id], [409, 'already_exists', first.id])
  assert.equal(same.headers.get('x-should-retry'), 'false')
  for (const [body, named] of [
    [{ domain: 'no host' }, /^domain/],
    [{ profile_name: 'a b' }, /^profile_name/],
    [{ login_url: 'ftp://site.test' }, /^login_url/],
    [{ health_check_interval: 300 }, /^health_check_interval: must be at least 600/],
    [{ health_check_interval: 90_000 }, /^health_check_interval/],
    [{ credential: {} }, /^credential/],
    [{ credential: { name: 'a', provider: 'b' } }, /^credential/],
    [{ credential: { name: 'unknown' } }, /^credential.name/],
    [{ credential: { provider: 'unknown', auto: true } }, /^credential.provider/],
    [{ credential: { provider: 'a', path: 'no-slash' } }, /^credential.path/],
    [{ proxy: { id: 'a' }, browser: { proxy: { id: 'b' } } }, /^proxy/],
    [{ browser: { region: 'us-west' } }, /^region: us-west is not served here/],
    [{ allowed_domains: ['a b'] }, /^allowed_domains/],
    [{ save_credential_as: 'x' }, /save_credential_as/],
  ] as const) {
    const { status, body: answer } = await create(body)
    assert.deepEqual([status, named.test(answer.message)], [400, true], JSON.stringify([body, answer]))
  }
  assert.equal((await create({})).status, 201)
  const third = await create({ profile_name: 'c' })
  assert.deepEqual([third.status, third.body.code], [403, 'insufficient_plan'])
  const { body: limits } = await project.call<OrgLimits>('GET', '/org/limits')
  assert.deepEqual(
    [limits.auth_connections_used, limits.max_auth_connections, limits.min_health_check_interval_seconds],
    [2, 2, 600],
  )
})

test('a TOTP code is computed from the stored secret, and tried once more when it expires', async () => {
  const project = await server.project()
  let refusals = 1
  const site: FakeLoginSite = {
    first: 'login',
    pages: {
      ...simple.pages,
      login: { ...withCode.pages.login, state: 'form', choices: [], submit: () => 'code' },
      code: {
        state: 'form',
        fields: [{ name: 'code', purpose: 'totp' }],
        submit: ({ code = '' }) => (/^\d{6}$/.test(code) && refusals-- <= 0 ? 'home' : 'again'),
      },
      again: {
        state: 'form',
        fields: [{ name: 'code', purpose: 'totp', is_rejected: true }],
        about: { problem: 'code_rejected' },
        submit: () => 'home',
      },
    },
  }
  const browsers = host(server, site)
  const values = { email: 'ann@site.test', password }
  const secret = { totp_secret: 'GEZDGNBVGY3TQOJQ', totp_period: 10 }
  await project.call('POST', '/credentials', { name: 'with-code', domain: 'site.test', values, ...secret })
  const { id } = await connect(project, { credential: { name: 'with-code' } })
  // Four seconds before the next code: the current one is still typed, and the wait is short.
  server.clock.advance(16 - ((server.clock.now().getTime() / 1000) % 10))
  // The clock of the test stands still, but the wait for the next code uses real time.
  const moving = setInterval(() => server.clock.advance(0.4), 250)

  await login(project, id)
  const done = await until(project, id, isOver).finally(() => clearInterval(moving))

  assert.deepEqual([done.flow_status, done.can_reauth], ['SUCCESS', true])
  const codes = browsers.flatMap(({ typed }) => typed).filter(({ name }) => name === 'code')
  assert.equal(codes.length, 2)
  assert.notEqual(codes[0]?.value, codes[1]?.value)
})

test('a person confirms elsewhere, or takes another way', async () => {
  const project = await server.project()
  const site: FakeLoginSite = {
    first: 'push',
    pages: {
      push: {
        state: 'external_action',
        about: { external_action_message: 'Tap 42 on your phone' },
        choices: [{ kind: 'mfa', label: 'Text me', mfa_type: 'sms', masked_destination: '•• 42' }],
        choose: () => 'code',
      },
      ...withCode.pages,
    },
  }
  const browsers: FakeLogin[] = host(server, site)
  const { id } = await connect(project)
  await login(project, id)
  const waiting = await until(project, id, ({ flow_step }) => flow_step === 'AWAITING_EXTERNAL_ACTION')
  assert.equal(waiting.external_action_message, 'Tap 42 on your phone')
  assert.deepEqual(waiting.mfa_options, [{ type: 'sms', label: 'Text me', target: '•• 42', description: null }])

  assert.equal((await submit(project, id, { mfa_option_id: 'sms' })).status, 202)
  await until(project, id, isAsking)
  browsers[0]?.goTo('home')
  // Manually, in the live view.
  const done = await until(project, id, isOver)

  assert.deepEqual([done.flow_status, done.can_reauth_reason], ['SUCCESS', 'no_credential'])
})
