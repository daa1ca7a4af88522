import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { operations } from '@berth/contract/agent/operations.ts'
import type { CreatedApiKey } from '@berth/contract/api-keys/api-key.ts'
import { newId, type ProjectId } from '@berth/contract/common/ids.ts'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import { publicEndpoints } from '@berth/contract/index.ts'
import type { Project } from '@berth/contract/projects/project.ts'
import { type ZipMember, zip } from '@berth/runtime/testing/zip.ts'
import { sql } from 'kysely'
import { WebSocket } from 'ws'
import { FakeProviders } from '../testing/fakes/fake-providers.ts'
import { type TestProject, TestServer } from '../testing/server-test.ts'
import { newApiKey } from './secrets.ts'

/*
 * Calls every operation of the contract as callers who must not have access. New operations are included automatically.
 * An operation on a new kind of resource has to state here how to create one.
 */

const searchProviders = await FakeProviders.open()
const server = await TestServer.open({
  auditExport: { buckets: ['bucket'], endpoint: 'http://127.0.0.1:9' },
  search: searchProviders.config(['searxng']),
})
after(async () => {
  await server.close()
  await searchProviders.close()
})

const withKeys = publicEndpoints.filter(({ access }) => access === 'project' || access === 'organization')
const manifest: ZipMember = { name: 'manifest.json', content: '{"manifest_version": 3, "name": "x", "version": "1"}' }

interface Resource {
  /** The path of a resource, with its id in braces. */
  readonly path: string
  /** Whether it belongs to the organization, so that keys of all its projects may see it. */
  readonly isShared?: boolean
  readonly make: (call: Call, project: TestProject) => Promise<string>
}

type Call = (method: string, path: string, body?: unknown) => Promise<Answer>

interface Answer {
  readonly status: number
  readonly text: string
}

const made = async (call: Call, path: string, body: unknown) => {
  const { status, text } = await call('POST', path, body)
  assert.ok(status === 200 || status === 201, `POST ${path}: ${text}`)
  const record = JSON.parse(text)
  return String(record.session_id ?? record.id)
}

/** One resource of each kind. All have the same name, whatever project they are created in. */
const resources: readonly Resource[] = [
  {
    path: '/browsers/{id_or_name}',
    make: (call) => made(call, '/browsers', { name: 'same', headless: true }),
  },
  {
    path: '/browser_pools/{id_or_name}',
    make: (call) => made(call, '/browser_pools', { name: 'same', size: 1, headless: true }),
  },
  { path: '/profiles/{id_or_name}', make: (call) => made(call, '/profiles', { name: 'same' }) },
  {
    path: '/proxies/{id_or_name}',
    make: (call) => made(call, '/proxies', { type: 'custom', name: 'same', config: { host: 'proxy.test', port: 80 } }),
  },
  {
    path: '/extensions/{id_or_name}',
    make: (call) => {
      const form = new FormData()
      form.set('name', 'same')
      form.set('file', new Blob([new Uint8Array(zip(manifest))]), 'x.zip')
      return made(call, '/extensions', form)
    },
  },
  {
    path: '/credentials/{id_or_name}',
    make: (call) =>
      made(call, '/credentials', { name: 'same', domain: 'example.com', values: {}, totp_secret: 'AAAA' }),
  },
  {
    path: '/auth/connections/{id}',
    make: (call) => made(call, '/auth/connections', { domain: 'same.example', profile_name: 'of-connection' }),
  },
  { path: '/vaults/{id_or_name}', make: (call) => made(call, '/vaults', { name: 'same' }) },
  {
    path: '/vault-provider-configs/{id_or_name}',
    isShared: true,
    make: (call) => {
      const credentials = { client_id: 'client', client_secret: 'secret' }
      return made(call, '/vault-provider-configs', { provider: 'link', name: 'same', credentials })
    },
  },
  {
    path: '/config-registry/analyses/{id}',
    make: async (call) => {
      const { text } = await call('POST', '/config-registry/resolve', { url: 'https://same.example/' })
      return JSON.parse(text).analysis.id
    },
  },
  { path: '/webhooks/{id}', make: (call) => made(call, '/webhooks', { url: 'https://receiver.example' }) },
  { path: '/search/{id}', make: (call) => made(call, '/search', { query: 'same' }) },
  {
    path: '/deployments/{id}',
    make: (call) => {
      const form = new FormData()
      form.set('file', new Blob([new Uint8Array(zip({ name: 'index.js', content: '' }))]), 'x.zip')
      form.set('entrypoint_rel_path', 'index.js')
      return made(call, '/deployments', form)
    },
  },
  { path: '/invocations/{id}', make: (call) => makeInvocation(call) },
  { path: '/org/projects/{id_or_name}', make: async (_call, { id }) => id },
  { path: '/projects/{id_or_name}', make: async (_call, { id }) => id },
  {
    path: '/org/api_keys/{id}',
    make: (call, { id }) => made(call, '/org/api_keys', { name: 'same', project_id: id }),
  },
  {
    path: '/org/credential_providers/{id}',
    isShared: true,
    make: (call) =>
      made(call, '/org/credential_providers', { provider_type: 'onepassword', name: 'same', token: 'token' }),
  },
  {
    path: '/telemetry/destinations/{id_or_name}',
    isShared: true,
    make: (call) => made(call, '/telemetry/destinations', { name: 'same', endpoint: 'https://collector.example' }),
  },
  {
    path: '/audit-logs/export/destinations/{id}',
    isShared: true,
    make: (call) => {
      const place = { region: 'us-east-1', bucket: 'bucket', prefix: '', role_arn: 'arn' }
      return made(call, '/audit-logs/export/destinations', { type: 's3', format: 'jsonl.gz', ...place })
    },
  },
]

/** Inserted directly, because apps run in machines. */
async function makeInvocation(call: Call): Promise<string> {
  const [deployment] = JSON.parse((await call('GET', '/deployments')).text)
  const { project_id } = await server.database
    .selectFrom('deployments')
    .select('project_id')
    .where('id', '=', deployment.id)
    .executeTakeFirstOrThrow()
  const now = server.clock.now()
  const invocation = {
    id: newId('invocation', now),
    project_id,
    deployment_id: deployment.id,
    app_name: 'same',
    version: 'same',
    action_name: 'same',
    status: 'running' as const,
    server_id: 'test',
    created_at: now,
    deadline: now,
  }
  await server.database.insertInto('invocations').values(invocation).execute()
  return invocation.id
}

/** Bodies of operations that validate the body before they look up the resource. */
const bodies: Readonly<Record<string, unknown>> = {
  updateProfile: { name: 'taken' },
  updateProxy: { name: 'taken' },
  updateInvocation: { status: 'failed' },
  updateApiKey: { name: 'taken' },
  releaseBrowser: { session_id: 'any' },
  submitAuthConnection: { selected_choice_id: 'any' },
  upsertVaultItem: { type: 'credential', spec: { provider: 'kernel', fields: [{ name: 'user', type: 'text' }] } },
  updateVaultItem: { type: 'credential', version: 1, spec: {} },
  performVaultItemOperation: { type: 'collect' },
}

/** For resources of an organization, a key of another project is rejected or gets the same result as every key. */
interface Owner {
  readonly call: Call
  readonly ids: ReadonlyMap<string, string>
}

const victimProject = await server.project()
const victim = await ownerOf(victimProject, {})
const { body: neighbour } = await victimProject.call<Project>('POST', '/org/projects', { name: 'neighbour' })
const neighbourKey = newApiKey()
await victimProject.addKey(neighbourKey, neighbour.id as ProjectId)
const strangerProject = await server.project()

const outsiders: Readonly<Record<string, Call>> = {
  'a key of another organization': callOf(strangerProject, {}),
  'a key of another project': callOf(victimProject, { key: neighbourKey }),
  'the same key for another project': callOf(victimProject, { headers: { 'X-Kernel-Project': 'neighbour' } }),
}

async function ownerOf(project: TestProject, init: Init, withShared = true): Promise<Owner> {
  const call = callOf(project, init)
  const ids = new Map<string, string>()
  for (const { path, make, isShared } of resources) {
    if (!isShared || withShared) ids.set(path, await make(call, project))
  }
  return { call, ids }
}

interface Init {
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
}

function callOf(project: TestProject, { key, headers }: Init): Call {
  return async (method, path, body) => {
    const isForm = body instanceof FormData
    const response = await fetch(`${server.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key ?? project.key}`,
        ...headers,
        ...(body !== undefined && !isForm && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
    })
    return { status: response.status, text: await response.text() }
  }
}

/** The kind of resource that the operation is about, or undefined. */
function resourceOf({ path, operationId }: Endpoint): Resource | undefined {
  if (!path.includes('{')) return undefined
  const resource = resources.find((known) => path.startsWith(known.path))
  assert.ok(resource, `${operationId}: say in isolation.test.ts how what is at ${path} is made`)
  return resource
}

/** Fills in the id of the victim's resource. The remaining parameters do not matter to a stranger. */
function filled({ path }: Endpoint, resource: Resource): string {
  const id = victim.ids.get(resource.path) ?? ''
  return path.replace(resource.path, resource.path.replace(/\{\w+\}/, id)).replaceAll(/\{\w+\}/g, '1')
}

function bodyOf(endpoint: Endpoint): unknown {
  if (endpoint.bodyType === 'multipart/form-data') {
    const form = new FormData()
    form.set('extensions[0][name]', 'x')
    form.set('extensions[0][zip_file]', new Blob([new Uint8Array(zip(manifest))]), 'x.zip')
    return form
  }
  return endpoint.body && (bodies[endpoint.operationId.replace(/Legacy$/, '')] ?? {})
}

const snapshot = async () => {
  const { sessions, rest } = await readAll()
  return JSON.stringify([sessions, rest])
}

async function readAll() {
  const tables = [
    'browser_pools',
    'profiles',
    'proxies',
    'extensions',
    'deployments',
    'invocations',
    'credentials',
    'auth_connections',
    'auth_flows',
    'vaults',
    'vault_items',
    'vault_provider_configs',
    'config_analyses',
    'credential_providers',
    'audit_export_destinations',
    'searches',
    'replays',
    'webhooks',
    'webhook_deliveries',
    'projects',
    'api_keys',
  ] as const
  const rest = await Promise.all(
    tables.map((table) => sql`select * from ${sql.table(table)} order by id`.execute(server.database)),
  )
  const sessions = await sql`select id, name, state, tags, proxy from sessions order by id`.execute(server.database)
  return { sessions: sessions.rows, rest: rest.map(({ rows }) => rows) }
}

for (const [who, call] of Object.entries(outsiders)) {
  test(`${who} finds nothing at any path of a project`, async () => {
    const before = await snapshot()
    const faults: string[] = []

    for (const endpoint of withKeys) {
      const resource = resourceOf(endpoint)
      if (!resource || (resource.isShared && who !== 'a key of another organization')) continue
      // An organization's own key sees the projects and keys of all its projects, whichever project it selects.
      if (endpoint.access === 'organization' && who === 'the same key for another project') continue
      const path = filled(endpoint, resource)
      const { status, text } = await call(endpoint.method, path, bodyOf(endpoint))
      const isRefused = endpoint.access === 'organization' && status === 403
      if (status !== 404 && !isRefused) faults.push(`${endpoint.method} ${path}: ${status} ${text}`)
    }

    assert.deepEqual(faults, [])
    assert.equal(await snapshot(), before, 'nothing has changed')
  })

  test(`${who} finds nothing of a project in any list`, async () => {
    const isSameKey = who === 'the same key for another project'
    const lists = withKeys.filter(
      ({ method, path, access }) =>
        method === 'GET' && !path.includes('{') && !(isSameKey && access === 'organization'),
    )
    for (const { path } of lists) {
      const { text } = await call('GET', `${path}?status=all&include_deleted=true`)
      for (const { path: one, isShared } of resources) {
        const id = victim.ids.get(one) ?? ''
        if (isShared && who !== 'a key of another organization') continue
        assert.ok(!text.includes(id), `GET ${path}: ${text}`)
      }
    }
  })
}

/**
 * A reference to another resource in the body of a request. `:session`, `:pool` and the like are the caller's own
 * resources.
 */
type Reference = readonly [kind: string, call: string, body: (named: Named) => unknown]
interface Named {
  readonly id?: string
  readonly name?: string
}

const ofSession = (fields: object) => ({ headless: true, ...fields })
const ofPool = (fields: object) => ({ headless: true, size: 1, ...fields })
const ofConnection = (fields: object) => ({ domain: 'refused.example', profile_name: 'refused', ...fields })
const exportTo = (destination: Named) => ({ enabled: true, export: { otlp: { destination } } })
const routeTo = (proxy: Named) => ({ proxy_routes: [{ hosts: ['example.com'], proxy }] })
const idOrName = ({ id, name }: Named) => id ?? name

const references: readonly Reference[] = [
  ['/profiles/{id_or_name}', 'POST /browsers', (profile) => ofSession({ profile })],
  ['/profiles/{id_or_name}', 'PATCH /browsers/:session', (profile) => ({ profile })],
  ['/profiles/{id_or_name}', 'POST /browser_pools', (profile) => ofPool({ profile })],
  ['/profiles/{id_or_name}', 'PATCH /browser_pools/:pool', (profile) => ({ profile })],
  ['/proxies/{id_or_name}', 'POST /browsers', (proxy) => ofSession({ proxy })],
  ['/proxies/{id_or_name}', 'POST /browsers', (proxy) => ofSession({ proxy_id: idOrName(proxy) })],
  ['/proxies/{id_or_name}', 'POST /browsers', (proxy) => ofSession({ network: routeTo(proxy) })],
  ['/proxies/{id_or_name}', 'PATCH /browsers/:session', (proxy) => ({ proxy })],
  ['/proxies/{id_or_name}', 'PATCH /browsers/:session', (proxy) => ({ proxy_id: idOrName(proxy) })],
  ['/proxies/{id_or_name}', 'POST /browser_pools', (proxy) => ofPool({ proxy_id: idOrName(proxy) })],
  ['/proxies/{id_or_name}', 'PATCH /browser_pools/:pool', (proxy) => ({ proxy_id: idOrName(proxy) })],
  ['/proxies/{id_or_name}', 'POST /auth/connections', (proxy) => ofConnection({ proxy })],
  ['/proxies/{id_or_name}', 'PATCH /auth/connections/:connection', (proxy) => ({ proxy })],
  ['/proxies/{id_or_name}', 'POST /auth/connections/:connection/login', (proxy) => ({ proxy })],
  ['/extensions/{id_or_name}', 'POST /browsers', (extension) => ofSession({ extensions: [extension] })],
  ['/extensions/{id_or_name}', 'POST /browser_pools', (extension) => ofPool({ extensions: [extension] })],
  ['/extensions/{id_or_name}', 'PATCH /browser_pools/:pool', (extension) => ({ extensions: [extension] })],
  ['/vaults/{id_or_name}', 'POST /browsers', (vault) => ofSession({ vaults: [vault] })],
  ['/invocations/{id}', 'POST /browsers', (invocation) => ofSession({ invocation_id: idOrName(invocation) })],
  ['/browsers/{id_or_name}', 'POST /browser_pools/:pool/release', (session) => ({ session_id: idOrName(session) })],
  ['/browsers/{id_or_name}', 'POST /search', (session) => searchWith(session)],
  ['/browsers/{id_or_name}', 'POST /search/:search/contents', (session) => ({ content: contentOf(session) })],
  [
    '/credentials/{id_or_name}',
    'POST /auth/connections',
    (named) => ofConnection({ credential: { name: idOrName(named) } }),
  ],
  [
    '/credentials/{id_or_name}',
    'PATCH /auth/connections/:connection',
    (named) => ({ credential: { name: idOrName(named) } }),
  ],
  ['/browsers/{id_or_name}', 'POST /vaults/:vault/items/login/operations', (session) => fillIn(session)],
  ['/auth/connections/{id}', 'PUT /vaults/:vault/items/linked', (connection) => linkedTo(connection)],
  [
    '/deployments/{id}',
    'POST /invocations',
    (app) => ({ app_name: idOrName(app), version: 'latest', action_name: 'a' }),
  ],
  ['/org/projects/{id_or_name}', 'POST /org/api_keys', (project) => ({ name: 'x', project_id: idOrName(project) })],
  ['/telemetry/destinations/{id_or_name}', 'POST /browsers', (to) => ofSession({ telemetry: exportTo(to) })],
  [
    '/telemetry/destinations/{id_or_name}',
    'POST /auth/connections',
    (to) => ofConnection({ browser_telemetry: exportTo(to) }),
  ],
]

const contentOf = (session: Named) => ({ source: 'browser', browser: { browser_id: idOrName(session) } })
const fillIn = (session: Named) => ({
  type: 'fill',
  browser_id: idOrName(session),
  fields: [{ field: 'user', selector: '#user' }],
})
const linkedTo = (connection: Named) => ({
  type: 'credential',
  spec: { provider: 'managed_auth', connection_id: idOrName(connection) },
})
const searchWith = (session: Named) => ({ query: 'x', content: contentOf(session) })

test('a foreign resource in a body is not found, like one that does not exist', async () => {
  const faults: string[] = []
  for (const [who, call] of Object.entries(outsiders)) {
    const own: Readonly<Record<string, string>> = {
      ':session': await made(call, '/browsers', { headless: true }),
      ':pool': await made(call, '/browser_pools', { size: 1, headless: true }),
      ':connection': await made(call, '/auth/connections', {
        domain: 'own.example',
        profile_name: who.replaceAll(' ', '-'),
      }),
      ':search': await made(call, '/search', { query: 'own' }),
      ':vault': await made(call, '/vaults', { name: 'own' }),
    }
    await call('PUT', `/vaults/${own[':vault']}/items/login`, {
      type: 'credential',
      spec: { provider: 'kernel', fields: [{ name: 'user', type: 'text', value: 'ann' }] },
    })
    for (const [kind, template, bodyWith] of references) {
      const isShared = resources.some(({ path, isShared: of }) => path === kind && of)
      if (who !== 'a key of another organization' && (isShared || kind === '/org/projects/{id_or_name}')) continue
      const [method = '', path = ''] = template.replace(/:\w+/, (name) => own[name] ?? name).split(' ')
      const id = victim.ids.get(kind) ?? ''
      const strangeId = `${id.slice(0, -4)}zzzz`
      for (const [theirs, nothing] of [
        [{ id }, { id: strangeId }],
        [{ name: 'same' }, { name: 'none' }],
      ]) {
        const answer = await call(method, path, bodyWith(theirs as Named))
        const absent = await call(method, path, bodyWith(nothing as Named))
        const told = answer.text.replaceAll(id, strangeId).replaceAll('same', 'none')
        const isAbsent = answer.status === 404 || /: no [a-z ]+ has this name/.test(answer.text)
        if (!isAbsent || answer.status !== absent.status || told !== absent.text) {
          faults.push(`${who}: ${template} ${JSON.stringify(theirs)}: ${answer.text} and not ${absent.text}`)
        }
      }
    }
  }
  assert.deepEqual(faults, [])
})

test('names that are taken in one project are free in others', async () => {
  await ownerOf(strangerProject, {})
  await ownerOf(victimProject, { headers: { 'X-Kernel-Project': 'neighbour' } }, false)
})

test('an expired, deleted or unknown key gives no access to any operation', async () => {
  const [expired, deleted] = await Promise.all(
    ['expired', 'deleted'].map(async (name) => {
      const answer = await victimProject.call<CreatedApiKey>('POST', '/org/api_keys', { name, days_to_expire: 1 })
      return answer.body
    }),
  )
  await victimProject.call('DELETE', `/org/api_keys/${deleted?.id}`)
  await server.database
    .updateTable('api_keys')
    .set({ expires_at: server.clock.now() })
    .where('id', '=', expired?.id as never)
    .execute()

  const faults: string[] = []
  const keys = [expired?.key, deleted?.key, newApiKey(), 'sk', ''].map((key) => key ?? '')
  const ask = async (endpoint: Endpoint, key: string) => {
    const resource = resourceOf(endpoint)
    const path = resource ? filled(endpoint, resource) : endpoint.path
    const { status } = await callOf(victimProject, { key })(endpoint.method, path, bodyOf(endpoint))
    if (status !== 401) faults.push(`${endpoint.method} ${path} with ${key}: ${status}`)
  }
  // All operations look up the key in the same way.
  for (const key of keys) for (const endpoint of withKeys.slice(0, 5)) await ask(endpoint, key)
  for (const [index, endpoint] of withKeys.entries()) await ask(endpoint, keys[index % keys.length] ?? '')
  assert.deepEqual(faults, [])
})

test('the token of one session gives no access to another', async () => {
  const own = await strangerProject.session({ headless: true })
  const token = new URL(own.cdp_ws_url).searchParams.get('jwt')
  const session = victim.ids.get('/browsers/{id_or_name}')

  const faults: string[] = []
  for (const { method, agentPath } of operations) {
    const path = `/s/${session}${agentPath.replaceAll(/\{\w+\}/g, '1')}?jwt=${token}`
    const { status } = await fetch(`${server.url}${path}`, { method })
    if (status !== 401) faults.push(`${method} ${path}: ${status}`)
  }
  assert.deepEqual(faults, [])
})

test('the token of a live view without input gives no other access to its session', async () => {
  const session = await victimProject.session({ headless: true })
  const own = await callOf(victimProject, {})('GET', `/browsers/${session.session_id}/live_view`)
  const address = new URL(JSON.parse(own.text).read_only_url)
  const token = address.searchParams.get('jwt')
  const below = `/s/${session.session_id}`
  const paths = [
    ...operations.map(({ method, agentPath }) => [method, `${below}${agentPath.replaceAll(/\{\w+\}/g, '1')}`] as const),
    ...['/json', '/json/version', `${below}/json/list`, `${below}/telemetry/stream`].map(
      (path) => ['GET', path] as const,
    ),
    ['POST', `${below}/webdriver/session`],
  ] as const

  const faults: string[] = []
  for (const [method, path] of paths) {
    const { status } = await fetch(`${server.url}${path}?jwt=${token}`, { method })
    const asBearer = await fetch(`${server.url}${path}`, { method, headers: { authorization: `Bearer ${token}` } })
    if (status !== 401 || asBearer.status !== 401) faults.push(`${method} ${path}: ${status}, ${asBearer.status}`)
  }
  for (const path of ['/cdp', '/devtools/browser/1', '/devtools/page/1', '/webdriver', '/live/read-only']) {
    const url = `${server.url.replace('http', 'ws')}${below}${path}?jwt=${token}`
    const refused = await new Promise((resolve) => {
      const socket = new WebSocket(url).on('error', () => {}).on('open', () => resolve('open'))
      socket.on('unexpected-response', (_request, response) => resolve(response.statusCode))
    })
    if (refused !== 401) faults.push(`websocket ${path}: ${refused}`)
  }
  const page = await fetch(`${server.url}${address.pathname}?jwt=${token}&readOnly=false`)

  assert.deepEqual(faults, [])
  assert.equal(page.status, 200)
  assert.match(await page.text(), /data-read-only="true"/)
})

test('a foreign key gives no access below the address of a session', async () => {
  const session = victim.ids.get('/browsers/{id_or_name}')
  const faults: string[] = []
  for (const key of [strangerProject.key, neighbourKey]) {
    for (const { method, agentPath, isPassThrough } of operations) {
      const path = `/s/${session}${agentPath.replaceAll(/\{\w+\}/g, '1')}`
      const { status } = await fetch(`${server.url}${path}`, { method, headers: { authorization: `Bearer ${key}` } })
      // A pass-through operation leaves the header to the other server.
      if (status !== (isPassThrough ? 401 : 404)) faults.push(`${method} ${path}: ${status}`)
    }
  }
  assert.deepEqual(faults, [])
})
