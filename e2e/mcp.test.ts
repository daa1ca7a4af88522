import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { Berth } from './testing/berth.ts'

/* The official MCP client, over HTTP and over stdio. */

const berth = await Berth.start()
after(() => berth[Symbol.asyncDispose]())

async function overHttp(headers: Readonly<Record<string, string>> = {}): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  const transport = new StreamableHTTPClientTransport(new URL(`${berth.url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${berth.apiKey}`, ...headers } },
  })
  // The library's own types disagree under exactOptionalPropertyTypes.
  await client.connect(transport as never)
  return client
}

async function overStdio(env: Readonly<Record<string, string>> = {}): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  const program = { command: `${import.meta.dirname}/../berth`, args: ['mcp'], stderr: 'ignore' as const }
  const connection = { BERTH_URL: berth.url, BERTH_API_KEY: berth.apiKey, PATH: process.env.PATH ?? '' }
  await client.connect(new StdioClientTransport({ ...program, env: { ...connection, ...env } }))
  return client
}

const http = await overHttp()
const stdio = await overStdio()
after(() => Promise.all([http.close(), stdio.close()]))

async function call(client: Client, name: string, args: Record<string, unknown>) {
  const { content, isError } = (await client.callTool({ name, arguments: args })) as CallToolResult
  const [first] = content
  const text = first?.type === 'text' ? first.text : ''
  return { text, content, isError: isError === true }
}

async function succeed(name: string, args: Record<string, unknown> = {}, client = http) {
  const { text, isError } = await call(client, name, args)
  assert.equal(isError, false, text)
  return JSON.parse(text)
}

const session = await succeed('manage_browsers', {
  ...{ action: 'create', name: 'mcp', headless: true, timeout_seconds: 600 },
  ...{ viewport_width: 1000, viewport_height: 700, telemetry_console: true },
})
const session_id = session.session_id

test('offers the same tools over HTTP and stdio', async () => {
  const [{ tools }, other] = await Promise.all([http.listTools(), stdio.listTools()])

  assert.deepEqual(other.tools, tools)
  assert.ok(tools.every(({ description, inputSchema }) => description && inputSchema.type === 'object'))
  assert.deepEqual(
    tools.map(({ name }) => name),
    [
      ...['get_connection_context', 'manage_browsers'],
      ...['manage_profiles', 'manage_projects', 'manage_api_keys'],
      ...['manage_browser_pools', 'manage_proxies', 'manage_extensions', 'manage_credentials'],
      ...[
        'manage_credential_providers',
        'manage_auth_connections',
        'manage_replays',
        'manage_apps',
        'computer_action',
        'browser_curl',
      ],
      ...[
        'execute_playwright_code',
        'exec_command',
        'snapshot',
        'navigate',
        'click',
        'type',
        'select',
        'press',
        'upload',
      ],
      ...['wait_for', 'tabs', 'extract', 'screenshot', 'download', 'search_docs'],
    ],
  )
})

test('reports the organization and project of the connection', async () => {
  const { scope, project, organization } = await succeed('get_connection_context', {}, stdio)

  assert.equal(scope, 'organization')
  assert.equal(project, null)
  assert.ok(organization.id)
})

const calls: readonly (readonly [string, Record<string, unknown>, (answer: never) => unknown, unknown])[] = [
  [
    'manage_browsers',
    { action: 'get', session_id: 'mcp' },
    ({ viewport }: { viewport: { width: number } }) => viewport.width,
    1000,
  ],
  [
    'manage_browsers',
    { action: 'list' },
    ({ items, has_more, next_offset }: Listed) => [items.length, has_more, next_offset],
    [1, false, null],
  ],
  [
    'manage_browsers',
    { action: 'update', session_id: 'mcp', viewport_width: 900, viewport_height: 600 },
    ({ viewport }: { viewport: { width: number } }) => viewport.width,
    900,
  ],
  [
    'manage_profiles',
    { action: 'list' },
    ({ items, note }: Listed) => [items, note],
    [[], 'There is no profile. The action setup creates one.'],
  ],
  ['manage_projects', { action: 'create', name: 'other' }, ({ name }: Named) => name, 'other'],
  [
    'manage_projects',
    { action: 'get_limits', project: 'other' },
    (limits: object) => 'max_concurrent_sessions' in limits,
    true,
  ],
  ['manage_api_keys', { action: 'list' }, ({ items }: Listed) => items.length, 1],
  ['manage_browser_pools', { action: 'list' }, ({ items }: Listed) => items, []],
  [
    'manage_proxies',
    { action: 'create', type: 'custom', name: 'way', custom_host: 'proxy.example', custom_port: 8080 },
    ({ name }: Named) => name,
    'way',
  ],
  ['manage_proxies', { action: 'rename', proxy_id: 'way', name: 'ways' }, ({ name }: Named) => name, 'ways'],
  ['manage_proxies', { action: 'delete', proxy_id: 'ways' }, (answer: object) => answer, { ok: true }],
  ['manage_extensions', { action: 'list' }, ({ items }: Listed) => items, []],
  [
    'manage_credentials',
    { action: 'create', name: 'login', domain: 'a.example', values: { username: 'u', password: 'p' } },
    ({ name }: Named) => name,
    'login',
  ],
  [
    'manage_auth_connections',
    { action: 'create', domain: 'a.example', profile_name: 'of-connection', credential_name: 'login' },
    ({ status }: { status: string }) => status,
    'NEEDS_AUTH',
  ],
  ['manage_auth_connections', { action: 'list', domain_filter: 'a.example' }, ({ items }: Listed) => items.length, 1],
  ['manage_credential_providers', { action: 'list' }, ({ items }: Listed) => items, []],
  ['manage_replays', { action: 'list', session_id: 'mcp' }, ({ items }: Listed) => items, []],
  ['manage_apps', { action: 'list_apps' }, ({ items }: Listed) => items, []],
  [
    'execute_playwright_code',
    { session_id: 'mcp', code: 'console.log("logged"); return 1 + 1' },
    ({ result }: { result: number }) => result,
    2,
  ],
  [
    'exec_command',
    { session_id: 'mcp', command: 'sh', args: ['-c', 'echo out; exit 4'] },
    ({ stdout, exit_code }: { stdout: string; exit_code: number }) => [stdout, exit_code],
    ['out\n', 4],
  ],
  ['search_docs', { query: 'reserve machines' }, (found: readonly { page: string }[]) => found.length > 0, true],
]
interface Listed {
  readonly items: readonly unknown[]
  readonly has_more: boolean
  readonly next_offset: number | null
  readonly note?: string
}
interface Named {
  readonly name: string
}

for (const [name, args, read, expected] of calls) {
  test(`${name} ${args.action ?? ''} answers`, async () => {
    assert.deepEqual(read((await succeed(name, args)) as never), expected)
  })
}

test('works in a page with references', async () => {
  const say = async (name: string, args: Record<string, unknown> = {}) => {
    const { text, isError } = await call(http, name, { session_id, ...args })
    assert.equal(isError, false, text)
    return text
  }
  const page = `data:text/html,<title>Form</title><form onsubmit="document.title=q.value;return false"><input id=q aria-label=Text><select id=s aria-label=Size><option>S<option>L</select><button>Send</button></form><h1>Heading</h1>`

  assert.match(await say('navigate', { url: page }), /^t1 "Form" data:/)
  const text = await say('snapshot')
  const [, box] = /(e\d+) textbox "Text"/.exec(text) ?? []
  const [, list] = /(e\d+) combobox "Size"/.exec(text) ?? []
  await say('select', { ref: list, values: ['L'] })
  await say('type', { ref: box, text: 'sent' })
  await say('press', { ref: box, key: 'Enter' })
  assert.match(await say('wait_for', { url: 'data:' }), /"sent"/)
  assert.match(await say('snapshot', { changes: true }), /^\+ .*textbox "Text" ="sent" focused$/m)
  assert.match(await say('extract'), /# Heading/)
  assert.match(await say('tabs', { action: 'open', url: 'about:blank' }), /^t2 /)
  assert.match(await say('tabs', { action: 'close', tab_id: 't2' }), /^t1 .*\(in front\)$/)
  const { content } = await call(http, 'screenshot', { session_id })
  assert.deepEqual(
    content.map(({ type }) => type),
    ['image', 'text'],
  )
  assert.deepEqual(JSON.parse(await say('download')), [])
})

test('acts on the screen, and shows it', async () => {
  const actions = [
    { type: 'move_mouse', move_mouse: { x: 100, y: 50, smooth: false } },
    { type: 'get_mouse_position' },
    { type: 'screenshot' },
  ]

  const { content, isError } = await call(http, 'computer_action', { session_id, actions })

  assert.equal(isError, false)
  assert.deepEqual(
    content.map((part) => (part.type === 'image' ? part.mimeType : part.type === 'text' && part.text)),
    ['{"x":100,"y":50}', 'image/png', 'viewport: {"width":900,"height":600,"refresh_rate":60}'],
  )
})

test('reads compact telemetry', async () => {
  await succeed('execute_playwright_code', { session_id, code: 'await page.evaluate(() => console.log("seen"))' })

  // Events are stored in batches.
  let items: readonly unknown[] = []
  while (items.length === 0) {
    const query = { action: 'get_telemetry', session_id, categories: ['console'] }
    items = (await succeed('manage_browsers', query)).items
  }

  assert.match(JSON.stringify(items), /seen/)
})

const failures = [
  [
    'manage_browsers',
    { action: 'get', session_id: 'none' },
    /^Error in manage_browsers \(get\): .*none.* \[code: session_not_found\]$/,
  ],
  ['manage_browsers', { action: 'get' }, /^Error in manage_browsers \(get\): session_id is required$/],
  ['manage_browsers', { action: 'fly' }, /^Error in manage_browsers \(fly\): action: /],
  ['manage_profiles', { action: 'rename', profile_name: 'x' }, /new_name is required/],
  ['manage_browsers', { action: 'list', project: 'none' }, /\[code: project_not_found\]/],
  [
    'computer_action',
    { session_id, actions: [{ type: 'screenshot' }, { type: 'sleep', sleep: { duration_ms: 1 } }] },
    /^Error in computer_action: sleep must come before/,
  ],
  ['nothing', {}, /^Error in nothing: there is no such tool$/],
] as const
for (const [name, args, message] of failures) {
  test(`${name} ${JSON.stringify(args).slice(0, 60)} is an error that says why`, async () => {
    const { text, isError } = await call(http, name, args)

    assert.equal(isError, true)
    assert.match(text, message)
  })
}

test('a connection for one project stays in it', async () => {
  await succeed('manage_projects', { action: 'create', name: 'pinned' })
  const pinned = await overHttp({ 'x-kernel-project': 'pinned' })

  const own = await call(pinned, 'manage_browsers', { action: 'list' })
  const other = await call(pinned, 'manage_browsers', { action: 'list', project: 'other' })
  await pinned.close()

  assert.deepEqual(JSON.parse(own.text).items, [])
  assert.match(other.text, /this connection is for the project pinned/)
})

test('serves resources and prompts', async () => {
  const { organization } = await succeed('get_connection_context')
  const { id } = await succeed('manage_projects', { action: 'get', project: 'other' })
  const root = `kernel://orgs/${organization.id}/projects`
  const { resourceTemplates } = await http.listResourceTemplates()
  const empty = await http.readResource({ uri: `${root}/${id}/browsers` })
  const prompt = await http.getPrompt({ name: 'debug-browser-session', arguments: { session_id: 'mcp' } })

  assert.equal(resourceTemplates.length, 8)
  assert.deepEqual(empty.contents[0], {
    uri: `${root}/${id}/browsers`,
    mimeType: 'text/plain',
    text: 'There are no browsers.',
  })
  assert.match(JSON.stringify(prompt.messages), /session mcp/)
})

test("reports missing items with the protocol's error codes", async () => {
  const { organization } = await succeed('get_connection_context')
  const { id } = await succeed('manage_projects', { action: 'get', project: 'other' })
  const root = `kernel://orgs/${organization.id}/projects`
  const resources = [
    [`kernel://orgs/other/projects/${id}/browsers`, /organization/],
    [`${root}/${id}/none`, /there is no resource/],
    [`${root}/${id}/browsers/%ff`, /there is no resource/],
    [`${root}/${id}/browsers/none`, /none/],
    [`${root}/${id}/apps/none`, /there is no app none/],
    [`${root}/none/browsers`, /Project not found/],
  ] as const
  const prompts = [
    [{ name: 'kernel-concepts', arguments: { concept: 'none' } }, /concept must be one of/],
    [{ name: 'debug-browser-session' }, /session_id is required/],
    [{ name: 'none' }, /there is no prompt none/],
  ] as const

  for (const [uri, message] of resources) await assert.rejects(http.readResource({ uri }), { code: -32_002, message })
  for (const [prompt, message] of prompts) await assert.rejects(http.getPrompt(prompt), { code: -32_602, message })
})

test('leaves out the toolsets that the operator has disabled', async () => {
  const client = await overStdio({ BERTH_MCP_DISABLED_TOOLSETS: 'manage_projects shell' })

  const names = (await client.listTools()).tools.map(({ name }) => name)
  await client.close()

  assert.ok(names.includes('manage_browsers'))
  assert.ok(!names.includes('manage_projects') && !names.includes('exec_command'))
})

test('limits concurrent calls of an organization, and the size of requests', async () => {
  const send = async (body: object) => {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const response = await berth.request('/mcp', { method: 'POST', headers, body: JSON.stringify(body) })
    await response.text()
    return response.status
  }
  const never = { name: 'wait_for', arguments: { session_id, text: 'never', timeout_ms: 1_000 } }
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: never }

  // More than each of two servers accepts.
  const statuses = await Promise.all(Array.from({ length: 160 }, () => send(message)))

  assert.deepEqual([...new Set(statuses)].toSorted(), [200, 429])
  assert.equal(await send(Array.from({ length: 21 }, () => message)), 400)
  assert.equal(await send({ jsonrpc: '2.0', id: 1, method: 'tools/list' }), 200)
})

test('rejects requests without a key, other methods, and invalid messages', async () => {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  const without = await fetch(`${berth.url}/mcp`, { method: 'POST', headers, body: message })
  const stream = await berth.request('/mcp')
  const wrong = await berth.request('/mcp', { method: 'POST', headers, body: '{"jsonrpc":"1.0"}' })

  assert.equal(without.status, 401)
  assert.match(without.headers.get('www-authenticate') ?? '', /^Bearer /)
  assert.equal(stream.status, 405)
  assert.equal(wrong.status, 400)
})
