import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { VaultEncryptionKey } from '@berth/contract/vaults/vault.ts'
import type { VaultItem, VaultItemEvent } from '@berth/contract/vaults/vault-item.ts'
import { CompactEncrypt, generateKeyPair, importJWK } from 'jose'
import { type TestProject, TestServer } from '../../../testing/server-test.ts'

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

type Answer = VaultItem & Failure

const login = {
  provider: 'kernel',
  description: 'Login of the shop',
  fields: [
    { name: 'user', type: 'email', sensitive: false, label: 'E-mail', value: 'ann@example.com' },
    { name: 'password', type: 'password', value: 'p@ss-word' },
    { name: 'code', type: 'totp', required: false, value: 'GEZDGNBVGY3TQOJQ' },
  ],
}
const path = '/vaults/v/items/login'

async function projectWithVault(): Promise<TestProject> {
  const project = await server.project()
  await project.call('POST', '/vaults', { name: 'v' })
  return project
}

const put = (project: TestProject, spec: unknown = login, key = 'login') =>
  project.call<Answer>('PUT', `/vaults/v/items/${key}`, { type: 'credential', spec })

const patch = (project: TestProject, version: number, spec: object, rest: object = {}) =>
  project.call<Answer>('PATCH', path, { type: 'credential', version, spec, ...rest })

/** Reads the values like a fill operation. */
async function storedValues(project: TestProject): Promise<Record<string, string>> {
  const { values } = await server.services.vaultItems.get({ projectId: project.id, vault: 'v', key: 'login' })
  return Object.fromEntries(values)
}

test('an item is created, found again by the same request, read, listed and deleted, and shows no sensitive value', async () => {
  const project = await projectWithVault()

  const made = await put(project)
  assert.equal(made.status, 200, JSON.stringify(made.body))
  const { spec, state, version, available_operations, action } = made.body
  assert.deepEqual(spec, {
    provider: 'kernel',
    description: 'Login of the shop',
    fields: [
      { name: 'user', type: 'email', required: true, sensitive: false, label: 'E-mail' },
      { name: 'password', type: 'password', required: true, sensitive: true },
      { name: 'code', type: 'totp', required: false, sensitive: true },
    ],
  })
  assert.deepEqual(state, {
    provider: 'kernel',
    status: 'ready',
    fields: {
      user: { has_value: true, value: 'ann@example.com' },
      password: { has_value: true },
      code: { has_value: true },
    },
  })
  assert.deepEqual(
    [version, action, available_operations.map(({ type }) => type)],
    [1, undefined, ['collect', 'fill', 'webmcp_invoke']],
  )
  assert.deepEqual((await project.call('GET', '/vaults/v/items/login')).body, made.body)
  assert.deepEqual((await project.call('GET', '/vaults/v/items')).body, [made.body])

  const again = await put(project)
  assert.deepEqual([again.status, again.body], [200, made.body])
  const other = await put(project, { ...login, fields: [{ ...login.fields[0], value: 'bob@example.com' }] })
  assert.deepEqual([other.status, other.body.code], [409, 'vault_item_exists'])

  assert.equal((await project.call('DELETE', '/vaults/v/items/login')).status, 204)
  for (const [method, rest, body] of [
    ['GET', ''],
    ['DELETE', ''],
    ['GET', '/events'],
    ['PATCH', '', { type: 'credential', version: 1, spec: {} }],
    ['POST', '/operations', { type: 'collect' }],
  ] as const) {
    const gone = await project.call<Failure>(method, `${path}${rest}`, body)
    assert.deepEqual([gone.status, gone.body.code], [404, 'vault_item_not_found'], `${method} ${rest}`)
  }
})

test('fields may be an object from names to definitions, and the provider may be absent', async () => {
  const project = await projectWithVault()

  const { status, body } = await put(project, {
    fields: { pin: { type: 'password', value: '1234' }, who: { type: 'text' } },
  })

  assert.equal(status, 200)
  assert.ok(body.spec.provider === 'kernel')
  assert.deepEqual(
    body.spec.fields.map(({ name, type }) => [name, type]),
    [
      ['pin', 'password'],
      ['who', 'text'],
    ],
  )
  assert.equal(body.state.status, 'pending_collection')
})

test('an invalid value is a 400 that names the field and not the value', async () => {
  const project = await projectWithVault()
  const field = { name: 'a', type: 'text' }
  const one = (change: object) => ({ provider: 'kernel', fields: [{ ...field, ...change }] })

  for (const [place, spec] of [
    ['spec.fields', { provider: 'kernel' }],
    ['spec.fields', { provider: 'kernel', fields: [] }],
    ['spec.fields', { fields: Array.from({ length: 33 }, (_value, index) => ({ ...field, name: `a${index}` })) }],
    ['spec.fields.1.name', { fields: [field, field] }],
    ['spec.fields.0.name', one({ name: '1a' })],
    ['spec.fields.0.name', one({ name: 'a'.repeat(65) })],
    ['spec.fields.0.type', one({ type: 'passkey' })],
    ['spec.fields.0.sensitive', one({ type: 'password', sensitive: false })],
    ['spec.fields.0.sensitive', one({ type: 'totp', sensitive: false })],
    ['spec.fields.0.label', one({ label: ' a' })],
    ['spec.fields.0.label', one({ label: 'ä'.repeat(65) })],
    ['spec.fields.0.label', one({ label: 'a\nb' })],
    ['spec.fields.0.value', one({ value: '' })],
    ['spec.fields.0.value', one({ value: null })],
    ['spec.fields.0.value', one({ value: 'hunter2'.repeat(2500) })],
    ['spec.fields.0.value', one({ type: 'email', value: 'hunter2 <a@b.c>' })],
    ['spec.fields.0.value', one({ type: 'totp', value: '234567' })],
    ['spec.fields.0.value', one({ type: 'totp', value: 'otpauth://totp/hunter2?secret=AAAA' })],
    ['spec.fields.0.encrypted_value', one({ value: 'hunter2', encrypted_value: 'x' })],
    ['spec.fields.0', one({ passkey: {} })],
    ['spec.description', { ...one({}), description: 'ä'.repeat(8193) }],
    ['spec.allowed_domains', { ...one({}), allowed_domains: [] }],
    ['spec.allowed_domains.0', { ...one({}), allowed_domains: ['https://a.example/'] }],
    ['spec', { ...one({}), website: 'x' }],
  ] as const) {
    const { status, body } = await put(project, spec)
    assert.equal(status, 400, `${place} ${JSON.stringify(body)}`)
    assert.ok(body.message.startsWith(`${place}:`), `${place}: ${body.message}`)
    assert.doesNotMatch(body.message, /hunter2/)
  }
  const tooLong = await put(project, { fields: [field], description: 'x'.repeat(140_000) })
  assert.equal(tooLong.status, 413)
  assert.equal((await put(project, login, 'a%20b')).status, 400)
})

test('types that need a missing service are rejected by name', async () => {
  const project = await projectWithVault()

  for (const [type, spec, status, code, message] of [
    ['wallet', { provider: 'kernel' }, 403, 'insufficient_plan', /^type: a wallet needs a payment service/],
    ['wallet', { provider: 'agentcard' }, 403, 'insufficient_plan', /^type: a wallet needs a payment service/],
    ['wallet', { provider: 'link' }, 403, 'insufficient_plan', /^type: a wallet needs a payment service/],
    ['card', { provider: 'agentcard' }, 403, 'insufficient_plan', /^type: a card needs a payment service/],
    ['card', { provider: 'link' }, 403, 'insufficient_plan', /^type: a card needs a payment service/],
    ['card', { provider: 'kernel', amount: 1 }, 403, 'insufficient_plan', /^type: a card needs a payment service/],
    ['credential_account', { provider: '1password' }, 400, 'field_not_supported', /^type: 1Password/],
    ['credential', { provider: '1password', website: 'x' }, 400, 'field_not_supported', /^spec.provider: 1password/],
    [
      'credential',
      { provider: 'managed_auth', connection_id: 'acn000000000000000000000' },
      404,
      'auth_connection_not_found',
      /^There is no connection/,
    ],
  ] as const) {
    const { status: answered, body } = await project.call<Failure>('PUT', path, { type, spec })
    assert.deepEqual([answered, body.code], [status, code], type)
    assert.match(body.message, message)
  }
  assert.deepEqual((await project.call('GET', '/vaults/v/items')).body, [])
})

test('values that were encrypted for the vault are stored, and those for another key are rejected', async () => {
  const project = await projectWithVault()
  const early = await put(project, {
    fields: [{ name: 'pin', type: 'password', encrypted_value: await encrypted('1234') }],
  })
  assert.deepEqual([early.status, early.body.code], [400, 'encryption_key_mismatch'])
  const { body: key } = await project.call<VaultEncryptionKey>('GET', '/vaults/v/encryption_key')
  const spec = async (text: string) => ({
    fields: [{ name: 'pin', type: 'password', encrypted_value: await encrypted(text, key) }],
  })

  const made = await put(project, await spec('1234'))
  assert.equal(made.status, 200, JSON.stringify(made.body))
  assert.deepEqual(await storedValues(project), { pin: '1234' })
  // Each encryption of the same value is a different text.
  assert.deepEqual((await put(project, await spec('1234'))).body, made.body)
  assert.equal((await put(project, await spec('9999'))).status, 409)
  const changed = await patch(project, 1, { fields: { pin: { encrypted_value: await encrypted('5678', key) } } })
  assert.equal(changed.status, 200)
  assert.deepEqual(await storedValues(project), { pin: '5678' })

  const whole = await encrypted('1234', key)
  for (const [code, value] of [
    ['encryption_key_mismatch', await encrypted('1234')],
    ['encryption_key_mismatch', await encrypted('1234', { ...key, kid: 'other' })],
    ['invalid_request', 'x'],
    ['invalid_request', `${whole.slice(0, -4)}AAAA`],
    ['invalid_request', await encrypted('1234', key, 'A128GCM')],
    ['invalid_input', await encrypted('', key)],
    ['invalid_input', await encrypted('x'.repeat(16 * 1024 + 1), key)],
  ] as const) {
    const refused = await patch(project, 2, { fields: { pin: { encrypted_value: value } } })
    assert.deepEqual([refused.status, refused.body.code], [400, code], refused.body.message)
    assert.match(refused.body.message, /^spec\.fields\.pin\.encrypted_value: /)
  }
})

async function encrypted(text: string, key?: VaultEncryptionKey, enc = 'A256GCM'): Promise<string> {
  const other = (await generateKeyPair('ECDH-ES', { crv: 'P-256' })).publicKey
  return new CompactEncrypt(new TextEncoder().encode(text))
    .setProtectedHeader({ alg: 'ECDH-ES', enc, kid: key?.kid ?? 'unknown' })
    .encrypt(key ? await importJWK(key.jwk, 'ECDH-ES') : other)
}

test('an update replaces, keeps and clears values, and must name the newest version', async () => {
  const project = await projectWithVault()
  const { body: made } = await put(project)

  const changed = await patch(project, 1, { fields: { password: { value: 'new' } }, description: '' })
  assert.deepEqual([changed.body.version, changed.body.spec.description], [2, undefined])
  assert.deepEqual(await storedValues(project), {
    user: 'ann@example.com',
    password: 'new',
    code: 'GEZDGNBVGY3TQOJQ',
  })
  // The original request still finds it, and resets nothing.
  assert.equal((await put(project)).body.version, 2)

  for (const [status, code, version, spec, rest] of [
    [409, 'vault_item_changed', 1, {}, {}],
    [409, 'vault_item_changed', 3, {}, {}],
    [409, 'vault_item_changed', 2, {}, { expected_item_id: 'vit0123456789abcdefghijk' }],
    [400, 'invalid_input', 2, { fields: { other: { value: 'x' } } }, {}],
    [400, 'invalid_input', 2, { fields: { user: { value: 'no address' } } }, {}],
    [400, 'invalid_input', 2, { fields: { user: {} } }, {}],
    [400, 'invalid_input', 2, { add_fields: [1] }, {}],
    [400, 'invalid_input', 2, { remove_fields: ['other'] }, {}],
  ] as const) {
    const refused = await patch(project, version, spec, rest)
    assert.deepEqual([refused.status, refused.body.code], [status, code], JSON.stringify(spec))
  }
  const card = await project.call<Failure>('PATCH', path, { type: 'card', spec: { amount: 1 } })
  assert.deepEqual([card.status, card.body.code], [409, 'vault_item_changed'])

  const cleared = await patch(project, 2, { fields: { password: { value: null } } }, { expected_item_id: made.id })
  assert.deepEqual([cleared.body.version, cleared.body.state.status], [3, 'pending_collection'])
  assert.match(cleared.body.action?.url ?? '', /\/collect\//)
  const ready = await patch(project, 3, { fields: { password: { value: 'x' }, code: { value: '' } } })
  assert.deepEqual([ready.body.state.status, ready.body.action], ['ready', undefined])
  assert.deepEqual(ready.body.state.fields?.code, { has_value: false })
})

test('fields are added and removed with their values', async () => {
  const project = await projectWithVault()
  const fields = [
    { name: 'user', type: 'text', sensitive: false, value: 'ann' },
    { name: 'pin', type: 'password', value: '1234' },
  ]
  const { body: made } = await put(project, { fields })
  const definition = { name: 'tenant', type: 'text', sensitive: false }

  for (const [spec, named] of [
    [{ add_fields: [{ ...definition, name: 'pin' }] }, /^spec.add_fields.0.name/],
    [
      { add_fields: [{ ...definition, type: 'passkey' }] },
      /^spec.add_fields.0.type: must be one of text, email, password, totp/,
    ],
    [{ add_fields: [{ ...definition, type: 'password' }] }, /^spec.add_fields.0.sensitive/],
    [{ add_fields: [{ ...definition, value: 'x' }] }, /^spec.add_fields.0/],
    [{ remove_fields: ['none'] }, /^spec.remove_fields.0/],
    [{ remove_fields: ['user', 'pin'] }, /^spec.remove_fields/],
    [{ fields: { pin: { value: 'x' } }, remove_fields: ['pin'] }, /^spec.fields.pin/],
  ] as const) {
    const refused = await patch(project, 1, spec)
    assert.deepEqual([refused.status, named.test(refused.body.message)], [400, true], refused.body.message)
  }
  const changed = await patch(project, made.version, {
    remove_fields: ['pin'],
    add_fields: [definition, { name: 'pin', type: 'password' }],
    fields: { tenant: { value: 'acme' } },
  })
  assert.ok(changed.body.spec.provider === 'kernel', JSON.stringify(changed.body))
  assert.deepEqual(
    changed.body.spec.fields.map(({ name }) => name),
    ['user', 'tenant', 'pin'],
  )
  assert.deepEqual(changed.body.state.fields, {
    user: { has_value: true, value: 'ann' },
    tenant: { has_value: true, value: 'acme' },
    pin: { has_value: false },
  })
  assert.equal(changed.body.state.status, 'pending_collection', 'a field that went has taken its value with it')
})

test('a required TOTP secret cannot be cleared', async () => {
  const project = await projectWithVault()
  await put(project, { fields: [{ name: 'code', type: 'totp', value: 'gezdgnbvgy3tqojq====' }] })

  const refused = await patch(project, 1, { fields: { code: { value: null } } })

  assert.deepEqual([refused.status, refused.body.code], [400, 'invalid_input'])
})

test('of twenty updates of one version on two servers one succeeds', async () => {
  const project = await projectWithVault()
  await put(project)

  const answers = await Promise.all(
    Array.from({ length: 20 }, (_value, index) =>
      patch(project.on(index % 2 ? sibling : server), 1, { fields: { password: { value: `p${index}` } } }),
    ),
  )

  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, ...Array.from({ length: 19 }, () => 409)])
})

test('of twenty creates with one key one succeeds, and the others return its item', async () => {
  const project = await projectWithVault()

  const answers = await Promise.all(
    Array.from({ length: 20 }, (_value, index) => put(project.on(index % 2 ? sibling : server))),
  )

  assert.equal(new Set(answers.map(({ status, body }) => `${status} ${body.id}`)).size, 1)
  const events = await project.call<VaultItemEvent[]>('GET', '/vaults/v/items/login/events')
  assert.deepEqual(
    events.body.map(({ name }) => name),
    ['item.created'],
  )
})

test('a vault can contain 200 items', async () => {
  const project = await projectWithVault()
  const spec = { fields: [{ name: 'a', type: 'text', value: 'x' }] }
  for (let index = 0; index < 200; index += 20) {
    await Promise.all(Array.from({ length: 20 }, (_value, offset) => put(project, spec, `k${index + offset}`)))
  }

  const refused = await put(project, spec, 'late')

  assert.deepEqual([refused.status, refused.body.code], [409, 'vault_full'])
  assert.equal((await put(project, spec, 'k7')).status, 200)
  assert.equal((await project.call<VaultItem[]>('GET', '/vaults/v/items')).body.length, 200)
})

test('events are listed in order, and a waiting caller gets the next one', async () => {
  const project = await projectWithVault()
  await put(project)
  const events = async (query = '', by = project) =>
    (await by.call<VaultItemEvent[]>('GET', `${path}/events${query}`)).body

  const [created] = await events()
  assert.deepEqual([created?.name, created?.data], ['item.created', { version: 1, status: 'ready' }])
  const waiting = [
    events(`?after=${created?.id}&wait=60`),
    events(`?after=${created?.id}&wait=60`, project.on(sibling)),
  ]
  await patch(project, 1, { fields: { password: { value: 'planted-secret' } } })
  for (const [updated, ...others] of await Promise.all(waiting)) {
    assert.deepEqual([updated?.name, others], ['item.updated', []])
    assert.deepEqual(updated?.data, { version: 2, status: 'ready', fields: ['password'] })
    assert.doesNotMatch(JSON.stringify(updated), /planted/)
  }

  assert.deepEqual(await events(`?after=${(await events()).at(-1)?.id}`), [])
  const unknown = await project.call<Failure>('GET', `${path}/events?after=vev0123456789abcdefghijk`)
  assert.deepEqual([unknown.status, unknown.body.code], [404, 'vault_event_not_found'])
  for (const wait of ['61', '-1', 'x']) {
    assert.match((await project.call<Failure>('GET', `${path}/events?wait=${wait}`)).body.message, /^wait: /)
  }
})

test('a waiting caller gets the item when it changes', async () => {
  const project = await projectWithVault()
  await put(project)

  const [waited] = await Promise.all([
    project.on(sibling).call<VaultItem>('GET', `${path}?wait=10`),
    patch(project, 1, { fields: { password: { value: 'x' } } }),
  ])

  // The wait may have started after the change.
  assert.equal(waited.body.version, 2, JSON.stringify(waited.body))
})

test('an operation that an item does not support is a 409', async () => {
  const project = await projectWithVault()
  await put(project)

  const passkeys = ['arm_passkey', 'register_passkey', 'disarm_passkey']
  const onePassword = ['create_access_request', 'access_request_status', 'fill', 'recover', 'update_access_token']
  const payments = ['authorize', 'restart_verification', 'confirm_transaction', 'prepare_checkout']
  for (const type of [...passkeys, ...onePassword.map((name) => `1pw_${name}`), ...payments]) {
    const refused = await project.call<Failure>('POST', `${path}/operations`, { type, browser_id: 'b', field: 'key' })
    assert.deepEqual([refused.status, refused.body.code], [409, 'vault_operation_not_available'], type)
    assert.ok(refused.body.message.includes(type), refused.body.message)
  }
  assert.equal((await project.call('POST', `${path}/operations`, { type: 'dance' })).status, 400)
  const expanded = await project.call<Failure>('GET', `${path}?expand=payment_methods`)
  assert.deepEqual([expanded.status, expanded.body.code], [409, 'expansion_not_available'])
})
