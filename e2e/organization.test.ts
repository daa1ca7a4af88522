import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import Kernel, { AuthenticationError, ConflictError, NotFoundError } from '@onkernel/sdk'
import { until } from './fault/testing/until.ts'
import { Berth, launch } from './testing/berth.ts'
import { createCheckedFetch } from './testing/checked-fetch.ts'

const dataFolder = await mkdtemp(join(tmpdir(), 'berth-organization-'))
after(() => rm(dataFolder, { recursive: true, force: true }))

/** Runs an operator command and returns the rows that it prints. */
async function operator<Row = Record<string, string>>(...args: readonly string[]): Promise<Row[]> {
  const child = launch([...args, '--json', '--data-dir', dataFolder])
  const [output, complaint, [code]] = await Promise.all([
    text(child.stdout as NodeJS.ReadableStream),
    text(child.stderr as NodeJS.ReadableStream),
    once(child, 'exit'),
  ])
  assert.equal(code, 0, complaint)
  return output
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}

// Runs before the first server: the commands create what they need.
const [acme] = await operator('org', 'create', 'Acme')
// The responses of a 1Password Connect server to these two requests.
const connect = createServer(({ url, headers }, response) => {
  const isGood = headers.authorization === 'Bearer connect-token'
  const items = [{ id: 'item', title: 'Mail', urls: [{ href: 'https://mail.example.com' }] }]
  const answer = url?.includes('/items') ? items : [{ id: 'vault', name: 'Work' }]
  response.writeHead(isGood ? 200 : 401, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
}).listen(0, '127.0.0.1')
await once(connect, 'listening')
after(() => {
  connect.close()
  connect.closeAllConnections()
})
const connectUrl = `http://127.0.0.1:${(connect.address() as AddressInfo).port}`
const berth = await Berth.start({ dataFolder, environment: { BERTH_ONEPASSWORD_CONNECT_URL: connectUrl } })
after(() => berth[Symbol.asyncDispose]())

const clientOf = async (apiKey: string | undefined, options: { projectID?: string } = {}) =>
  new Kernel({
    apiKey: apiKey ?? '',
    baseURL: berth.url,
    maxRetries: 0,
    fetch: await createCheckedFetch(berth.url),
    ...options,
  })
const client = await clientOf(acme?.api_key)

test('the operator creates organizations and revokes keys while the server runs', async () => {
  const [other] = await operator('org', 'create', 'Other')
  assert.deepEqual(
    (await operator('org', 'list')).map(({ name }) => name),
    ['Acme', 'Other'],
  )
  const [made] = await operator('keys', 'create', 'by hand', '--org', 'Other', '--project', 'Default', '--days', '2')
  const theirs = await clientOf(made?.api_key)
  assert.equal((await theirs.apiKeys.list()).items.length, 1, 'a key of one project')
  const listed = await operator('keys', 'list', '--org', String(other?.id))
  assert.deepEqual(
    listed.map(({ name, project }) => [name, project]),
    [
      ['by hand', 'Default'],
      ['first key', null],
    ],
  )

  await operator('keys', 'revoke', String(made?.id))

  const isRefused = async () =>
    (await theirs.browsers.list().catch((error: unknown) => error)) instanceof AuthenticationError
  await until('the key is refused', isRefused, { limitSeconds: 30 })
})

test('the official client creates, lists, renames, limits and deletes projects', async () => {
  const project = await client.projects.create({ name: 'Quay 7' })
  assert.equal((await client.projects.retrieve(project.id)).name, 'Quay 7')
  assert.equal((await client.projects.update(project.id, { name: 'Quay 8' })).name, 'Quay 8')
  await assert.rejects(client.projects.create({ name: 'Quay 8' }), ConflictError)
  const names: string[] = []
  for await (const { name } of client.projects.list({ limit: 1 })) names.push(name)
  assert.deepEqual(names, ['Quay 8', 'Default'])
  assert.equal(
    (await client.projects.limits.update(project.id, { max_concurrent_sessions: 3 })).max_concurrent_sessions,
    3,
  )
  assert.equal((await client.projects.limits.retrieve(project.id)).max_concurrent_sessions, 3)

  const inProject = await clientOf(acme?.api_key, { projectID: project.id })
  await inProject.profiles.create({ name: 'pilot' })
  await assert.rejects(client.profiles.retrieve('pilot'), NotFoundError)
  await assert.rejects(client.projects.delete(project.id), ConflictError)
  await inProject.profiles.delete('pilot')

  await client.projects.delete(project.id)
  await assert.rejects(client.projects.retrieve(project.id), NotFoundError)
  await assert.rejects(inProject.profiles.list(), NotFoundError)
})

test('the official client creates, lists, renames, rotates and deletes API keys', async () => {
  const made = await client.apiKeys.create({ name: 'ci', days_to_expire: 30 })
  assert.ok(made.key.startsWith('sk_'))
  const theirs = await clientOf(made.key)
  assert.deepEqual((await theirs.browsers.list()).items, [])
  assert.equal((await client.apiKeys.update(made.id, { name: 'ci 2' })).name, 'ci 2')
  const rotated = await client.apiKeys.rotate(made.id, { expire_in_days: 0 })
  await assert.rejects(theirs.browsers.list(), AuthenticationError)
  assert.deepEqual((await (await clientOf(rotated.key)).browsers.list()).items, [])

  await client.apiKeys.delete(rotated.id)
  await assert.rejects(client.apiKeys.retrieve(rotated.id), NotFoundError)
  assert.ok((await client.apiKeys.retrieve(rotated.id, { include_deleted: true })).deleted_at)
  const found = await Array.fromAsync(client.apiKeys.list({ query: 'ci 2', status: 'all', sort_by: 'name' }))
  assert.deepEqual(new Set(found.map(({ id }) => id)), new Set([made.id, rotated.id]))
})

test('the official client reads and changes the limits of the organization', async () => {
  const before = await client.organization.limits.retrieve()
  assert.equal(before.max_concurrent_sessions, 1000)

  const after = await client.organization.limits.update({ default_project_max_concurrent_sessions: 7 })

  assert.equal(after.default_project_max_concurrent_sessions, 7)
  await client.organization.limits.update({ default_project_max_concurrent_sessions: 0 })
  const entitlements = await client.get<{ plan: { id: string } }>('/org/entitlements')
  assert.equal(entitlements.plan.id, 'ENTERPRISE')
})

test('the official client stores credentials and gets one-time codes', async () => {
  const made = await client.credentials.create({
    name: 'mail',
    domain: 'example.com',
    values: { user: 'ann', password: 'p@ss' },
    totp_secret: 'GEZDGNBVGY3TQOJQ',
  })
  assert.match(made.totp_code ?? '', /^\d{6}$/)
  assert.match((await client.credentials.totpCode('mail')).code, /^\d{6}$/)
  const changed = await client.credentials.update('mail', { values: { pin: '1' }, remove_value_keys: ['user'] })
  assert.deepEqual(changed.value_keys, ['password', 'pin'])
  assert.equal((await client.credentials.retrieve(made.id)).name, 'mail')
  const listed = await Array.fromAsync(client.credentials.list({ domain: 'example.com' }))
  assert.deepEqual(
    listed.map(({ id }) => id),
    [made.id],
  )
  await client.credentials.delete('mail')
  await assert.rejects(client.credentials.retrieve('mail'), NotFoundError)
})

test('the official client connects 1Password, tests it, lists its items and disconnects it', async () => {
  const made = await client.credentialProviders.create({
    provider_type: 'onepassword',
    name: 'op',
    token: 'connect-token',
  })
  assert.deepEqual((await client.credentialProviders.retrieve(made.id)).name, 'op')
  assert.deepEqual(await client.credentialProviders.test(made.id), {
    success: true,
    vaults: [{ id: 'vault', name: 'Work' }],
  })
  const { items = [] } = await client.credentialProviders.listItems(made.id)
  assert.deepEqual(
    items.map(({ path, urls }) => [path, urls]),
    [['Work/Mail', ['https://mail.example.com']]],
  )
  assert.equal((await client.credentialProviders.update(made.id, { token: 'wrong', priority: 2 })).priority, 2)
  assert.match((await client.credentialProviders.test(made.id)).error ?? '', /refuses the token/)
  assert.equal((await client.credentialProviders.list()).items.length, 1)

  await client.credentialProviders.delete(made.id)

  await assert.rejects(client.credentialProviders.delete(made.id), NotFoundError)
  await assert.rejects(client.credentialProviders.listItems(made.id), NotFoundError)
})

test('the official client searches and downloads the audit log, including entries from just before a kill', async () => {
  const start = new Date(Date.now() - 60_000).toISOString()
  const window = { start, end: new Date(Date.now() + 600_000).toISOString() }
  await client.profiles.create({ name: 'before-the-kill' })
  await berth.signal('SIGKILL')
  const next = await Berth.start({ dataFolder })
  after(() => next[Symbol.asyncDispose]())
  const again = await next.client()

  const entries = await Array.fromAsync(again.auditLogs.list({ ...window, exclude_method: ['GET'], limit: 10 }))
  assert.deepEqual([entries[0]?.method, entries[0]?.path, entries[0]?.status], ['POST', '/profiles', 201])
  assert.match(entries[0]?.user_agent ?? '', /^Kernel\/JS /)

  const pieces: Uint8Array[] = []
  const file = { write: (piece: Uint8Array) => void pieces.push(piece) }
  const { rows, chunks } = await again.auditLogs.download({ ...window, limit: 10 }, file)
  const lines = gunzipSync(Buffer.concat(pieces)).toString().trimEnd().split('\n')
  assert.deepEqual([lines.length, rows], [entries.length, entries.length])
  assert.ok(chunks > 1)
  assert.equal((await again.auditLogs.exportChunk({ ...window, format: 'jsonl', limit: 1 })).status, 200)
})
