import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { ConnectionEvent, ManagedAuth } from '@berth/contract/managed-auth/connection.ts'
import { TestServer } from '../../testing/server-test.ts'
import {
  connect,
  credential,
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

const server = await TestServer.open()
const sibling = await server.sibling('sibling')
after(async () => {
  await sibling.close()
  await server.close()
})

const right = { fields: { username: 'ann', password } }

/** Resolves when the session has ended. */
async function hasEnded(sessionId: string | null | undefined): Promise<void> {
  for (let look = 0; look < 3_000; look += 1) {
    if ((await server.row(sessionId ?? '')).state === 'deleted') return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error('the browser of a flow still runs')
}

test('of many concurrent logins on two servers, one continues and the others are canceled', async () => {
  host(server, simple)
  host(sibling, simple)
  const project = await server.project()
  const { id } = await connect(project)

  const begun = await Promise.all(
    Array.from({ length: 6 }, (_value, index) => login(index % 2 ? project.on(sibling) : project, id)),
  )
  await until(project, id, isAsking)

  assert.equal(new Set(begun.map(({ handoff_code }) => handoff_code)).size, 6)
  const flows = await server.database
    .selectFrom('auth_flows')
    .select(['status'])
    .where('connection_id', '=', id as never)
    .execute()
  assert.deepEqual(flows.map(({ status }) => status).toSorted(), [...Array(5).fill('CANCELED'), 'IN_PROGRESS'])
  const sessions = async () =>
    (await server.database.selectFrom('sessions').select('id').where('state', '!=', 'deleted').execute()).length
  for (let look = 0; look < 3_000 && (await sessions()) > 1; look += 1)
    await new Promise((done) => setTimeout(done, 20))
  assert.equal(await sessions(), 1, 'one browser is left')
  await project.call('DELETE', `/auth/connections/${id}`)
})

test('of many answers to one question one is accepted, and typed once', async () => {
  const browsers = host(server, simple)
  const project = await server.project()
  const { id } = await connect(project)
  await login(project, id)
  const { interaction_id } = await until(project, id, isAsking)

  const answers = await Promise.all(
    Array.from({ length: 8 }, (_value, index) =>
      submit(index % 2 ? project.on(sibling) : project, id, { interaction_id, ...right }),
    ),
  )
  await until(project, id, isOver)

  assert.equal(answers.filter(({ status }) => status === 202).length, 1)
  for (const { status, body } of answers) {
    if (status !== 202) assert.ok(['stale_interaction', 'no_active_flow'].includes(body.code), body.code)
  }
  assert.deepEqual(
    browsers.flatMap(({ typed }) => typed).map(({ name }) => name),
    ['username', 'password'],
  )
})

test('fields that are not requested are rejected by name', async () => {
  host(server, withCode)
  const project = await server.project()
  const { id } = await connect(project)
  const path = `/auth/connections/${id}/submit`
  assert.equal((await submit(project, id, right)).body.code, 'no_active_flow')
  await login(project, id)
  const { interaction_id } = await until(project, id, isAsking)

  for (const [body, status, named] of [
    [{}, 400, /exactly one of/],
    [{ fields: { email: 'a' }, selected_choice_id: 'c0' }, 400, /selected_choice_id and fields/],
    [{ unknown: 1 }, 400, /unknown/],
    [{ field_values: { f0: 1 } }, 400, /field_values/],
    [{ field_values: { other: 'a' } }, 422, /^field_values.other/],
    [{ fields: { email: 'a', password: '' } }, 422, /^fields.password/],
    [{ selected_choice_id: 'c9' }, 422, /^selected_choice_id/],
    [{ mfa_option_id: 'sms' }, 422, /^mfa_option_id/],
    [{ sign_in_option_id: 'c0' }, 422, /^sign_in_option_id/],
    [{ sso_provider: 'other' }, 422, /^sso_provider/],
    [{ sso_button_selector: '//a' }, 422, /^sso_button_selector/],
    [{ interaction_id: 'old', field_values: { f0: 'a' } }, 422, /^interaction_id/],
  ] as const) {
    const answer = await project.call<Failure>('POST', path, body)
    assert.deepEqual([answer.status, named.test(answer.body.message)], [status, true], JSON.stringify(answer.body))
  }
  // The fields that the React client sends with a choice of the older kind.
  assert.equal((await submit(project, id, { interaction_id, fields: {}, sso_provider: 'Acme' })).status, 202)
  const done = await until(project, id, isOver)
  assert.deepEqual([done.flow_status, done.sso_provider], ['SUCCESS', 'acme'])
})

test('a hand-off code works once, for reading, following and answering one flow', async () => {
  host(server, simple)
  const project = await server.project()
  const { id } = await connect(project)
  const other = await connect(project, { profile_name: 'other' })
  const { handoff_code: code } = await login(project, id)
  await until(project, id, isAsking)
  const exchange = (wanted: string | undefined, of = id) =>
    project.call<{ jwt: string; invocation_id: string } & Failure>(
      'POST',
      `/auth/connections/${of}/exchange`,
      { code: wanted },
      { key: '' },
    )

  assert.equal((await exchange(code, other.id)).body.code, 'handoff_code_invalid')
  assert.equal((await exchange('wrong')).status, 400)
  assert.equal((await exchange(code, 'acn000000000000000000000')).status, 404)
  const answers = await Promise.all(Array.from({ length: 10 }, () => exchange(code)))
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, ...Array(9).fill(410)])
  const { jwt = '' } = answers.find(({ status }) => status === 200)?.body ?? {}
  const by = { key: jwt }
  const call = (method: string, path: string, body?: object) =>
    project.call<ManagedAuth & Failure>(method, path, body, by)
  assert.equal((await call('GET', `/auth/connections/${id}`)).body.flow_step, 'AWAITING_INPUT')
  assert.equal((await call('GET', `/auth/connections/${other.id}`)).status, 404)
  for (const [method, path] of [
    ['GET', '/auth/connections'],
    ['GET', `/auth/connections/${id}/timeline`],
    ['DELETE', `/auth/connections/${id}`],
    ['PATCH', `/auth/connections/${id}`],
    ['POST', `/auth/connections/${id}/login`],
    ['GET', '/credentials'],
    ['GET', '/browsers'],
  ] as const) {
    assert.equal((await call(method, path, method === 'GET' ? undefined : {})).status, 401, `${method} ${path}`)
  }
  assert.equal((await call('POST', `/auth/connections/${id}/submit`, right)).status, 202)
  const done = await until(project, id, isOver)
  assert.equal(done.flow_status, 'SUCCESS')
  assert.equal((await call('GET', `/auth/connections/${id}`)).body.flow_status, 'SUCCESS', 'the end can be read')
  server.clock.advance(31 * 60)
  assert.equal((await call('GET', `/auth/connections/${id}`)).status, 401)

  const second = await login(project, id)
  for (let wrong = 0; wrong < 10; wrong += 1) assert.equal((await exchange('wrong')).status, 400)
  assert.equal((await exchange(second.handoff_code)).status, 410, 'too many wrong codes close it')
  await project.call('DELETE', `/auth/connections/${id}`)
})

test('a flow that nobody answers expires, and its browser ends with it', async () => {
  host(server, simple)
  const project = await server.project()
  const { id } = await connect(project)
  await login(project, id)
  const { browser_session_id: session, interaction_id } = await until(project, id, isAsking)

  server.clock.advance(10 * 60)
  const late = await submit(project, id, { interaction_id, ...right })
  const state = await read(project, id)

  assert.equal(late.body.code, 'no_active_flow')
  assert.deepEqual(
    [state.flow_status, state.flow_step, state.error_code, state.status],
    ['EXPIRED', 'COMPLETED', 'awaiting_input_timeout', 'NEEDS_AUTH'],
  )
  await hasEnded(session)
  assert.equal((await server.row(session ?? '')).profile_save_changes, false, 'the profile stays as it was')
})

test('a delete cancels the flow, tells those who follow it, and ends its browser', async () => {
  host(server, simple)
  const project = await server.project()
  const { id } = await connect(project)
  await login(project, id)
  const { browser_session_id: session } = await until(project, id, isAsking)
  const response = await fetch(`${server.url}/auth/connections/${id}/events`, {
    headers: { authorization: `Bearer ${project.key}` },
  })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = (await reader?.read())?.value ?? ''

  assert.equal((await project.call('DELETE', `/auth/connections/${id}`)).status, 204)

  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) text += part.value
  const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']): ConnectionEvent => JSON.parse(data))
  const names = [...text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name)
  assert.ok(names.length >= 2 && names.every((name) => name === 'managed_auth_state'), String(names))
  const [first, last] = [events[0], events.at(-1)]
  assert.ok(first?.event === 'managed_auth_state' && last?.event === 'managed_auth_state')
  assert.deepEqual(
    [first.flow_step, first.fields?.length, first.discovered_fields?.length, 'website_error' in first],
    ['AWAITING_INPUT', 2, 2, false],
  )
  assert.deepEqual([last.flow_status, last.flow_step], ['CANCELED', 'COMPLETED'])
  await hasEnded(session)
  assert.equal((await project.call('GET', '/profiles/ann')).status, 200, 'the profile stays')
  assert.equal((await project.call('GET', `/auth/connections/${id}`)).status, 404)
})

test('a server that is killed while a person is asked continues with the same question', async () => {
  const browsers = host(server, simple)
  const project = await server.project()
  const { id } = await connect(project)
  await login(project, id)
  const asked = await until(project, id, isAsking)

  await server.crash()
  await server.start()
  const still = await read(project, id)
  assert.deepEqual([still.interaction_id, still.flow_step], [asked.interaction_id, 'AWAITING_INPUT'])
  await submit(project, id, { interaction_id: asked.interaction_id, ...right })
  const done = await until(project, id, isOver)

  assert.equal(done.flow_status, 'SUCCESS')
  assert.equal(browsers.flatMap(({ typed }) => typed).length, 2)
})

test('a server that is killed while it types a stored password never types it again', async () => {
  const browsers = host(server, simple)
  const project = await server.project()
  const { id } = await connect(project, { credential: { name: await credential(project) } })
  const isTyping = Promise.withResolvers<void>()
  const made = server.host.login
  server.host.login = () => {
    const browser = made?.()
    if (!browser) throw new Error('no site')
    browser.beforeAct = async () => {
      isTyping.resolve()
      // The response is lost with the server.
      await new Promise((resolve) => setTimeout(resolve, 300))
      browser.goTo('login')
    }
    return browser
  }
  await login(project, id)
  await isTyping.promise

  await server.crash()
  await server.start()
  const asked = await until(project, id, isAsking)

  assert.deepEqual(
    asked.fields?.map(({ ref }) => ref),
    ['password'],
    'a person decides',
  )
  assert.equal(browsers.flatMap(({ typed }) => typed).filter(({ name }) => name === 'password').length, 0)
  await project.call('DELETE', `/auth/connections/${id}`)
})

test('a flow fails when its browser exits', async () => {
  host(server, simple)
  const project = await server.project()
  const { id } = await connect(project)
  await login(project, id)
  const { browser_session_id: session } = await until(project, id, isAsking)

  await project.call('DELETE', `/browsers/${session}`)

  const { flow_status, error_code } = await until(project, id, isOver)
  assert.deepEqual([flow_status, error_code], ['FAILED', 'browser_error'])
})

test('a second login of a connection keeps the existing profile and credential', async () => {
  const project = await server.project()
  const { id } = await loggedIn(server, project)

  const { flow_type } = await login(project, id)
  await until(project, id, isOver)

  assert.equal(flow_type, 'REAUTH')
})
