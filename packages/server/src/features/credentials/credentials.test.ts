import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Credential } from '@berth/contract/credentials/credential.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

interface Failure {
  readonly code: string
  readonly message: string
}

/** The secret of RFC 6238's test vectors. */
const rfcSecret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'

const create = async (project: TestProject, body: object = {}): Promise<Credential> => {
  const whole = { name: 'mail', domain: 'example.com', values: { user: 'ann', password: 'p@ss' }, ...body }
  const answer = await project.call<Credential>('POST', '/credentials', whole)
  assert.equal(answer.status, 201, JSON.stringify(answer.body))
  return answer.body
}

const update = (project: TestProject, name: string, body: object) =>
  project.call<Credential & Failure>('PATCH', `/credentials/${name}`, body)

test('a credential is created, found by id and name, listed, renamed and deleted, and never returns its values', async () => {
  const project = await server.project()

  const created = await create(project, { domain: ' Example.COM ', sso_provider: 'google' })
  assert.deepEqual(
    [created.domain, created.has_values, created.has_totp_secret, created.value_keys, created.sso_provider],
    ['example.com', true, false, ['user', 'password'], 'google'],
  )
  const answers = [
    await project.call<Credential>('GET', `/credentials/${created.id}`),
    await project.call<Credential>('GET', '/credentials/mail'),
    await update(project, 'mail', { name: 'post' }),
    await project.call<Credential[]>('GET', '/credentials'),
  ]
  assert.deepEqual(answers[0]?.body, created)
  assert.deepEqual(answers[1]?.body, created)
  const [listed] = (answers[3]?.body ?? []) as Credential[]
  assert.deepEqual([listed?.name, listed?.value_keys], ['post', undefined])
  for (const { status, body } of answers) {
    assert.equal(status, 200)
    assert.ok(!JSON.stringify(body).includes('p@ss'))
  }

  assert.equal((await project.call('DELETE', '/credentials/post')).status, 204)
  for (const [method, path] of [
    ['GET', '/credentials/post'],
    ['DELETE', '/credentials/post'],
    ['GET', '/credentials/post/totp-code'],
  ] as const) {
    const gone = await project.call<Failure>(method, path)
    assert.deepEqual([gone.status, gone.body.code], [404, 'credential_not_found'])
  }
})

test('an update merges values, and removes before it adds', async () => {
  const project = await server.project()
  await create(project, { values: { a: '1', b: '2', c: '3' } })

  const changed = await update(project, 'mail', {
    remove_value_keys: ['a', 'b', 'nothing'],
    values: { a: '4', d: '5' },
  })
  assert.deepEqual(changed.body.value_keys, ['c', 'a', 'd'])
  assert.deepEqual(await storedValues(project), { c: '3', a: '4', d: '5' })

  await update(project, 'mail', { values: {} })
  assert.deepEqual(await storedValues(project), { c: '3', a: '4', d: '5' }, 'what is not named stays')
  const emptied = await update(project, 'mail', { remove_value_keys: ['a', 'c', 'd'] })
  assert.deepEqual([emptied.body.has_values, emptied.body.value_keys], [false, []])
})

/** Reads the values like a login of the service. */
async function storedValues(project: TestProject): Promise<Record<string, string>> {
  const row = await server.database
    .selectFrom('credentials')
    .select(['id', 'sealed_secrets'])
    .where('project_id', '=', project.id)
    .executeTakeFirstOrThrow()
  const text = await server.services.secrets.unseal(project.id, row.sealed_secrets, `credential ${row.id}`)
  assert.ok(!row.sealed_secrets.includes(text))
  return Object.fromEntries(JSON.parse(text).values)
}

test('twenty concurrent updates are all applied', async () => {
  const project = await server.project()
  await create(project, { values: {} })

  const answers = await Promise.all(
    Array.from({ length: 20 }, (_value, index) => update(project, 'mail', { values: { [`key-${index}`]: 'x' } })),
  )

  assert.ok(answers.every(({ status }) => status === 200))
  assert.equal(Object.keys(await storedValues(project)).length, 20)
})

test('of twenty creates with one name one succeeds, and a rename to a taken name is refused', async () => {
  const project = await server.project()
  const body = { name: 'one', domain: 'example.com', values: {} }

  const answers = await Promise.all(Array.from({ length: 20 }, () => project.call('POST', '/credentials', body)))

  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, ...Array.from({ length: 19 }, () => 409)])
  await create(project, { name: 'two' })
  const refused = await update(project, 'two', { name: 'one' })
  assert.deepEqual([refused.status, refused.body.code], [409, 'credential_name_taken'])
  assert.equal(refused.headers.get('x-should-retry'), 'false')
})

test('one-time codes match RFC 6238, keep leading zeros and expire with their period', async () => {
  const project = await server.project()
  const written = 'gezd gnbv-gy3t qojq GEZD GNBV GY3T QOJQ ===='
  const created = await create(project, { totp_secret: written, totp_digits: 8 })
  assert.equal(created.totp_code?.length, 8)
  assert.ok(Date.parse(created.totp_code_expires_at ?? '') > server.clock.now().getTime())

  const codes: string[] = []
  for (const second of [59, 1_111_111_109, 1_111_111_111, 1_234_567_890, 2_000_000_000]) {
    server.clock.advance(second - server.clock.now().getTime() / 1000)
    const { body } = await project.call<{ code: string; expires_at: string }>('GET', '/credentials/mail/totp-code')
    codes.push(body.code)
    assert.equal(Date.parse(body.expires_at), Math.floor(second / 30) * 30_000 + 30_000)
  }
  server.clock.advance(Date.now() / 1000 - server.clock.now().getTime() / 1000)

  assert.deepEqual(codes, ['94287082', '07081804', '14050471', '89005924', '69279037'])
})

test('a one-time code secret is set, changed and removed, and never returned', async () => {
  const project = await server.project()
  await create(project, { totp_secret: rfcSecret })
  assert.equal((await project.call<Credential>('GET', '/credentials/mail')).body.totp_code, undefined)
  assert.equal((await update(project, 'mail', { values: { x: 'y' } })).body.totp_code, undefined)

  const changed = await update(project, 'mail', { totp_digits: 7, totp_algorithm: 'SHA256', totp_period: 60 })
  assert.deepEqual([changed.body.totp_digits, changed.body.totp_algorithm, changed.body.totp_period], [7, 'SHA256', 60])
  const { body: seven } = await project.call<{ code: string }>('GET', '/credentials/mail/totp-code')
  assert.match(seven.code, /^\d{7}$/)
  assert.match((await update(project, 'mail', { totp_secret: 'ABCD EFGH' })).body.totp_code ?? '', /^\d{7}$/)

  const removed = await update(project, 'mail', { totp_secret: '', sso_provider: null })
  assert.deepEqual([removed.body.has_totp_secret, removed.body.totp_digits], [false, undefined])
  const none = await project.call<Failure>('GET', '/credentials/mail/totp-code')
  assert.deepEqual([none.status, none.body.code], [404, 'totp_secret_not_found'])
  assert.match((await update(project, 'mail', { totp_digits: 6 })).body.message, /^totp_digits: /)
})

test('an invalid value is a 400 that names the field and not the value', async () => {
  const project = await server.project()
  await create(project)
  const base = { name: 'x', domain: 'example.com', values: {} }
  const many = Object.fromEntries(Array.from({ length: 101 }, (_value, index) => [`k${index}`, 'v']))

  for (const [field, body] of [
    ['name', { ...base, name: '' }],
    ['domain', { ...base, domain: 'https://example.com/' }],
    ['domain', { ...base, domain: '' }],
    ['domain', { ...base, domain: 'a b' }],
    ['values', { name: 'x', domain: 'example.com' }],
    ['values', { ...base, values: many }],
    ['values', { ...base, values: { '': 'v' } }],
    ['values.pin', { ...base, values: { pin: 123456 } }],
    ['totp_secret', { ...base, totp_secret: 'hunter1!' }],
    ['totp_secret', { ...base, totp_secret: 'A' }],
    ['totp_digits', { ...base, totp_digits: 6 }],
    ['totp_digits', { ...base, totp_secret: 'AAAA', totp_digits: 9 }],
    ['body', { ...base, vault: 'x' }],
  ] as const) {
    const { status, body: failure } = await project.call<Failure>('POST', '/credentials', body)
    assert.equal(status, 400, JSON.stringify(body).slice(0, 100))
    assert.ok(failure.message.startsWith(`${field}`), `${field}: ${failure.message}`)
    assert.doesNotMatch(failure.message, /hunter1|123456/)
  }
  assert.equal((await update(project, 'mail', { domain: 'other.com' })).status, 400)
  assert.equal((await update(project, 'mail', { values: many })).status, 400)
  assert.equal(
    (await create(project, { name: 'höst', domain: 'xn--bcher-kva.example' })).domain,
    'xn--bcher-kva.example',
  )
})

test('a list is filtered', async () => {
  const project = await server.project()
  const ids: string[] = []
  for (const [name, domain] of [
    ['Work mail', 'mail.example.com'],
    ['Bank', 'bank.test'],
    ['Other', 'mail.example.com'],
  ] as const) {
    server.clock.advance(1)
    ids.push((await create(project, { name, domain })).id)
  }
  const names = async (query: string) =>
    (await project.call<Credential[]>('GET', `/credentials?${query}`)).body.map(({ name }) => name)

  assert.deepEqual(await names('domain=Mail.example.com'), ['Other', 'Work mail'])
  assert.deepEqual(await names('query=MAIL'), ['Other', 'Work mail'])
  assert.deepEqual(await names('query=work'), ['Work mail'])
  assert.deepEqual(await names(`query=${ids[1]}`), ['Bank'])
  assert.deepEqual(await names('limit=1&offset=1'), ['Bank'])
})
