import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { VaultItem, VaultItemEvent } from '@berth/contract/vaults/vault-item.ts'
import { type TestProject, TestServer } from '../../../testing/server-test.ts'

const server = await TestServer.open()
const sibling = await server.sibling('sibling')
after(async () => {
  await sibling.close()
  await server.close()
})

const path = '/vaults/v/items/login'
const spec = {
  description: 'Log in to <the> shop',
  fields: [
    { name: 'user', type: 'email', sensitive: false, label: 'E-mail "address"' },
    { name: 'password', type: 'password' },
    { name: 'note', type: 'text', required: false },
    { name: 'code', type: 'totp', required: false },
  ],
}

async function pendingItem(): Promise<{ project: TestProject; item: VaultItem; url: string }> {
  const project = await server.project()
  await project.call('POST', '/vaults', { name: 'v' })
  const { body: item } = await project.call<VaultItem>('PUT', path, { type: 'credential', spec })
  return { project, item, url: item.action?.url ?? '' }
}

const read = async (project: TestProject) => (await project.call<VaultItem>('GET', path)).body

/** Sends the form like a browser. */
async function submit(url: string, values: Record<string, string>) {
  const response = await fetch(url, { method: 'POST', body: new URLSearchParams(values) })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

const complete = { user: 'ann@example.com', password: 'planted-p@ss' }

test('an item without its values has a link to a form, which makes it ready', async () => {
  const { project, item, url } = await pendingItem()
  assert.equal(item.state.status, 'pending_collection')
  assert.deepEqual(
    item.available_operations.map(({ type }) => type),
    ['collect'],
  )
  assert.equal(Date.parse(item.action?.expires_at ?? ''), server.clock.now().getTime() + 30 * 60_000)
  const form = await fetch(url)
  const html = await form.text()
  assert.equal(form.status, 200)
  for (const part of [
    '<h1>Log in to &lt;the&gt; shop</h1>',
    '<label for="field-user">E-mail &quot;address&quot;</label>',
    'type="email"',
    'type="password"',
    'lang="en"',
  ]) {
    assert.ok(html.includes(part), part)
  }
  assert.ok(!html.includes('name="code"'), 'secrets for one-time codes are not collected')

  const stored = await submit(url, { ...complete, code: 'GEZDGNBVGY3TQOJQ', other: 'x' })
  assert.equal(stored.status, 200, stored.text)
  const ready = await read(project)
  assert.deepEqual([ready.version, ready.state.status, ready.action], [2, 'ready', undefined])
  assert.deepEqual(ready.state.fields, {
    user: { has_value: true, value: 'ann@example.com' },
    password: { has_value: true },
    note: { has_value: false },
    code: { has_value: false },
  })
  const events = await project.call<VaultItemEvent[]>('GET', `${path}/events`)
  assert.deepEqual(
    events.body.map(({ name }) => name),
    ['item.created', 'collection.submitted'],
  )
})

test('the page runs no scripts, loads nothing, cannot be embedded, and stays out of caches and referrers', async () => {
  const { url } = await pendingItem()

  const { headers } = await fetch(url)

  const policy = headers.get('content-security-policy') ?? ''
  for (const rule of ["default-src 'none'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"]) {
    assert.ok(policy.includes(rule), rule)
  }
  assert.doesNotMatch(policy, /script-src|unsafe/)
  assert.deepEqual(
    ['cache-control', 'referrer-policy', 'x-content-type-options', 'x-frame-options'].map((name) => headers.get(name)),
    ['no-store', 'no-referrer', 'nosniff', 'DENY'],
  )
})

test('an invalid submission stores nothing, and its response names the fields without their values', async () => {
  const { project, url } = await pendingItem()

  for (const [name, values] of [
    ['password', { user: complete.user }],
    ['user', { ...complete, user: 'planted-no-address' }],
    ['password', { ...complete, password: 'planted'.repeat(3000) }],
    ['note', { ...complete, note: 'planted\0' }],
  ] as const) {
    const { status, text } = await submit(url, values)
    assert.equal(status, 400)
    assert.match(text, new RegExp(`id="fault-${name}"`))
    assert.match(text, /role="alert"/)
    assert.doesNotMatch(text, /planted/)
  }
  assert.equal((await submit(url, { password: 'x'.repeat(600 * 1024) })).status, 413)
  const other = await fetch(url, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } })
  assert.equal(other.status, 415)

  assert.equal((await read(project)).version, 1)
  assert.equal((await submit(url, complete)).status, 200)
})

test('of twenty concurrent submissions of a link, one succeeds', async () => {
  const { url } = await pendingItem()

  const answers = await Promise.all(
    Array.from({ length: 20 }, (_value, index) =>
      submit(index % 2 ? url : url.replace(server.url, sibling.url), complete),
    ),
  )

  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, ...Array.from({ length: 19 }, () => 410)])
  assert.equal((await fetch(url)).status, 410)
})

test('links expire, end with a newer version and with the item, and unknown ones are invalid', async () => {
  const { project, item, url } = await pendingItem()
  assert.equal((await read(project)).action?.url, url, 'it stays the same')
  server.clock.advance(30 * 60)
  assert.equal((await fetch(url)).status, 410)
  assert.equal((await submit(url, complete)).status, 410)
  assert.deepEqual((await project.call<VaultItem[]>('GET', '/vaults/v/items')).body[0]?.action, undefined)

  const renewed = await Promise.all(
    Array.from({ length: 10 }, (_value, index) => read(project.on(index % 2 ? sibling : server))),
  )
  const tokens = new Set(renewed.map(({ action }) => new URL(action?.url ?? '').pathname))
  assert.equal(tokens.size, 1, 'concurrent reads get the same link')
  assert.deepEqual([renewed[0]?.version, renewed[0]?.id], [1, item.id])
  const second = `${server.url}${[...tokens][0]}`
  assert.equal((await fetch(second)).status, 200)

  const changed = await project.call<VaultItem>('PATCH', path, {
    type: 'credential',
    version: 1,
    spec: { fields: { user: { value: 'ann@example.com' } } },
  })
  assert.equal((await submit(second, complete)).status, 410)
  const third = changed.body.action?.url ?? ''
  assert.equal((await fetch(third)).status, 200)
  await project.call('DELETE', path)
  assert.equal((await submit(third, complete)).status, 410)
  for (const token of ['x', 'x'.repeat(43), '%00', '..']) {
    assert.notEqual((await fetch(`${server.url}/collect/${token}`)).status, 200, token)
  }
})

test('a ready item gets a link on request, and fields that are left empty keep their values', async () => {
  const { project, url } = await pendingItem()
  await submit(url, complete)

  const asked = await project.call<VaultItem>('POST', `${path}/operations`, { type: 'collect' })
  assert.equal(asked.status, 200)
  const again = await project.call<VaultItem>('POST', `${path}/operations`, { type: 'collect' })
  const link = asked.body.action?.url ?? ''
  assert.equal(again.body.action?.url, link)
  assert.deepEqual([asked.body.state.status, asked.body.version], ['ready', 2])
  const html = await (await fetch(link)).text()
  assert.doesNotMatch(html, /planted|ann@/)
  assert.equal((await submit(link, { note: 'hello' })).status, 200)

  const { values } = await server.services.vaultItems.get({ projectId: project.id, vault: 'v', key: 'login' })
  assert.deepEqual(Object.fromEntries(values), { ...complete, note: 'hello' })
})
