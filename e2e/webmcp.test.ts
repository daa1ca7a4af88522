import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { endlessScript, startPages } from './testing/pages.ts'
import { relayToLocalhost } from './testing/servers/localhost-relay.ts'

const pages = await startPages()
/** The session's own localhost is a secure origin, and its two names are different sites. */
const site = `http://127.0.0.1:${pages.port}`
const shopScript = `
  window.done = []
  const offer = (tool, options) => document.modelContext.registerTool(tool, options)
  const schema = { type: 'object', properties: { count: { type: 'number' } }, required: ['count'] }
  offer({ name: 'add', title: 'Plus one', description: 'Adds one', inputSchema: schema, annotations: { readOnlyHint: true },
    execute: ({ count }) => ({ content: [{ type: 'text', text: String(count + 1) }] }) })
  offer({ name: 'fail', description: 'Fails', execute() { throw new Error('sold out') } })
  offer({ name: 'large', description: 'Says much', execute: () => 'x'.repeat(300 * 1024) })
  offer({ name: 'slow', description: 'Never ends', execute: () => new Promise(() => { window.begun = true }) })
  offer({ name: 'leave', description: 'Goes elsewhere', execute: () => new Promise(() => { location.href = '/next' }) })
  window.revoked = new AbortController()
  offer({ name: 'brief', description: 'Goes soon', execute: () => 1 }, { signal: revoked.signal })`
pages.serve(
  '/shop',
  `<!doctype html><title>Shop</title>
  <form toolname="order" tooldescription="Order a table"><input name="who" required><input name="seats" type="number"><button>Order</button></form>
  <form toolname="search" tooldescription="Search" toolautosubmit><input name="q"></form>
  <iframe src="/within"></iframe>
  <iframe allow="tools" src="http://localhost:${pages.port}/within"></iframe>
  <script>${shopScript}
  addEventListener('submit', (event) => { event.preventDefault(); event.respondWith(Promise.resolve('found ' + event.target.q.value)) })</script>`,
)
pages.serve(
  '/within',
  `<!doctype html><title>Within</title><script>
  document.modelContext.registerTool({ name: 'within', description: 'In a frame', execute: () => location.pathname })</script>`,
)
pages.serve('/custom', '<!doctype html><title>Custom</title>')
pages.serve('/next', '<!doctype html><title>Next</title>')
const berth = await Berth.borrow()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})
const client = await berth.client()
const session = await client.browsers.create({ headless: true })
await relayToLocalhost(client, session.session_id, pages.port)
const cdp = await CdpClient.open(session.cdp_ws_url)
after(() => cdp.close())

interface Tool {
  readonly tool_ref: string
  readonly tool: {
    readonly name: string
    readonly title?: string
    readonly description: string
    readonly inputSchema: object
    readonly annotations?: object
  }
  readonly source: {
    readonly target_id: string
    readonly page_title: string
    readonly page_url: string
    readonly frame: { url: string } | null
    readonly custom?: object
  }
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  readonly body: any
}

async function ask(method: string, path: string, body?: object): Promise<Answer> {
  const response = await berth.request(`/browsers/${session.session_id}${path}`, {
    method,
    ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text), headers: response.headers }
}

async function tools(query = ''): Promise<readonly Tool[]> {
  const { status, body } = await ask('GET', `/webmcp/tools${query}`)
  assert.equal(status, 200)
  return body.tools
}

async function toolNamed(name: string): Promise<Tool> {
  // The tools of a busy page are left out temporarily.
  return until(`the tool ${name}`, async () => (await tools()).find(({ tool }) => tool.name === name), {
    limitSeconds: 60,
  })
}

/** Of the shop, with its frames, and of another tab, unless one of them is busy for a moment. */
async function allTools(): Promise<readonly Tool[] | undefined> {
  const found = await tools()
  return found.length >= 11 ? found : undefined
}

async function invoke(name: string, input?: object, options: object = {}) {
  return ask('POST', '/webmcp/invoke', {
    tool_ref: (await toolNamed(name)).tool_ref,
    ...(input && { input }),
    ...options,
  })
}

test('the tools of all tabs and frames are listed with their location', async () => {
  await cdp.openPage(`${site}/shop#top`)
  const page = await cdp.openPage(`${site}/within#x`)
  await cdp.evaluate(page, 'document.readyState')

  const listed = await until('every tool', allTools, { limitSeconds: 60 })

  const names = listed.map(({ tool }) => tool.name)
  for (const name of ['add', 'fail', 'large', 'slow', 'leave', 'brief', 'order', 'search'])
    assert.ok(names.includes(name), name)
  const add = listed.find(({ tool }) => tool.name === 'add') as Tool
  assert.equal(add.tool.title, 'Plus one')
  assert.equal(add.tool.description, 'Adds one')
  assert.deepEqual(add.tool.inputSchema, {
    type: 'object',
    properties: { count: { type: 'number' } },
    required: ['count'],
  })
  assert.equal((add.tool.annotations as { readOnlyHint: boolean }).readOnlyHint, true)
  assert.equal(add.source.page_title, 'Shop')
  assert.equal(add.source.page_url, `${site}/shop`)
  assert.equal(add.source.frame, null)
  const frames = listed.filter(({ tool }) => tool.name === 'within').map(({ source }) => source.frame?.url)
  assert.deepEqual(frames.sort(), [`${site}/within`, `http://localhost:${pages.port}/within`, undefined])
  const again = await until('every tool', allTools, { limitSeconds: 60 })
  const [before, after] = [listed, again].map((found) => found.map(({ tool_ref }) => tool_ref).sort())
  assert.deepEqual(after, before)
})

test('a tool is called, and its result or error is returned', async () => {
  const added = await invoke('add', { count: 4 })
  assert.equal(added.status, 200)
  assert.equal(added.body.status, 'completed')
  assert.deepEqual(added.body.output, { content: [{ type: 'text', text: '5' }] })
  assert.equal(typeof added.body.invocation_id, 'string')

  const failed = await invoke('fail')
  assert.deepEqual([failed.status, failed.body.status, failed.body.error_text], [200, 'error', 'Error: sold out'])
  const large = await invoke('large')
  assert.deepEqual([large.body.status, large.body.output], ['error', undefined])
  assert.equal((await invoke('within')).body.output, '/within')
})

test('forms that wait for the user are filled in, and others are submitted', async () => {
  const ordered = await invoke('order', { who: 'Ada', seats: 3 })
  assert.deepEqual([ordered.status, ordered.body.status], [200, 'awaiting_submission'])
  const { targetId } = await shopTarget()
  const { sessionId } = await cdp.send('Target.attachToTarget', { targetId, flatten: true })
  assert.deepEqual(
    await cdp.evaluate(sessionId as string, '[document.forms[0].who.value, document.forms[0].seats.value]'),
    ['Ada', '3'],
  )

  assert.equal((await invoke('search', { q: 'tea' })).body.output, 'found tea')
  assert.equal((await invoke('search', { q: 'a\0b' })).body.output, 'found a\0b', 'input is data')
})

test('the outcome of a tool that never ends is unknown, and must not be retried', async () => {
  const { status, body, headers } = await invoke('slow', {}, { timeout_sec: 3 })

  assert.deepEqual([status, body.code], [504, 'outcome_unknown'])
  assert.equal(headers.get('x-should-retry'), 'false')
  assert.equal(typeof body.invocation_id, 'string')
})

test('the outcome is unknown when the page closes meanwhile', async () => {
  const { targetId } = await cdp.send('Target.createTarget', { url: `${site}/shop` })
  const slow = async () =>
    (await tools()).find(({ tool, source }) => tool.name === 'slow' && source.target_id === targetId)
  await until('the slow tool', async () => (await slow()) !== undefined, { limitSeconds: 60 })
  const invoked = ask('POST', '/webmcp/invoke', { tool_ref: (await slow())?.tool_ref })
  const { sessionId } = await cdp.send('Target.attachToTarget', { targetId, flatten: true })
  await until('the call', async () => (await cdp.evaluate(sessionId as string, 'window.begun')) === true, {
    limitSeconds: 60,
  })
  await cdp.send('Target.closeTarget', { targetId })

  assert.deepEqual([(await invoked).status, (await invoked).body.code], [504, 'outcome_unknown'])
})

test('references become invalid with the tool and with the document', async () => {
  const { targetId } = await shopTarget()
  const { sessionId } = await cdp.send('Target.attachToTarget', { targetId, flatten: true })
  const [brief, add] = [await toolNamed('brief'), await toolNamed('add')]
  await cdp.evaluate(sessionId as string, 'revoked.abort()')
  assert.equal((await ask('POST', '/webmcp/invoke', { tool_ref: brief.tool_ref })).status, 404)

  await cdp.send('Page.enable', {}, sessionId as string)
  await cdp.send('Page.reload', {}, sessionId as string)
  await until(
    'the new tool',
    async () => (await tools()).some(({ tool, tool_ref }) => tool.name === 'add' && tool_ref !== add.tool_ref),
    { limitSeconds: 60 },
  )
  const gone = await until(
    'an answer of the page',
    async () => {
      const answer = await ask('POST', '/webmcp/invoke', { tool_ref: add.tool_ref, input: { count: 1 } })
      return answer.body.code !== 'page_not_answering' && answer
    },
    { limitSeconds: 60 },
  )
  assert.deepEqual([gone.status, gone.body.code], [404, 'tool_not_found'])
  assert.equal((await ask('POST', '/webmcp/invoke', { tool_ref: 'tool_none' })).status, 404)
})

test('a tool that navigates to another page has ended', async () => {
  const left = await invoke('leave')

  assert.deepEqual([left.status, left.body.status], [200, 'completed'])
  assert.ok((await tools()).every(({ tool }) => tool.name !== 'leave'))
})

test('a page that does not respond does not hide the tools of others', async () => {
  pages.serve('/stuck', `<!doctype html><script>setTimeout(() => { ${endlessScript} }, 0)</script>`)
  const { targetId } = await cdp.send('Target.createTarget', { url: `${site}/stuck` })

  assert.ok(await toolNamed('within'))
  await cdp.closePage(targetId as string)
})

test('Playwright code uses the same tools', async () => {
  const { result } = (await client.browsers.playwright.execute(session.session_id, {
    code: `
      let tool
      // The tools of a page that is busy for a moment are left out.
      while (!tool) [tool] = (await webmcp.listTools()).filter(({ tool }) => tool.name === 'within')
      const { output } = await webmcp.invokeTool(tool.tool_ref, {}, { timeoutSec: 5 })
      const error = await webmcp.invokeTool('tool_none').catch((error) => error)
      return { output, status: error.statusCode, code: error.code, body: error.body.code }`,
  })) as { result: object }

  assert.deepEqual(result, { output: '/within', status: 404, code: 'tool_not_found', body: 'tool_not_found' })
})

test('custom tools exist in matching pages, and run in the page or isolated from it', async () => {
  const { targetId } = await cdp.send('Target.createTarget', { url: `${site}/custom?page=1#here` })
  const source = `(() => {
    const shared = 'from one source'
    return [
      { kind: 'page', match: { url_patterns: ['${site}/custom*'] },
        tool: { name: 'heading', title: 'Heading', description: 'Says what the page is', annotations: { readOnlyHint: true } },
        async execute({ mark }) { if (mark === 'throw') throw new Error('no mark'); return [document.title + mark, shared] } },
      { kind: 'cdp', match: { url_patterns: ['${site}/custom*', 'https://*.example.test/*'] },
        tool: { name: 'beside', description: 'Works outside', inputSchema: { type: 'object' } },
        execute: async (input, { matches }) => {
          if (input.ends) process.exit(3)
          const { sep } = await import('node:path')
          return { title: await js('document.title'), url: matches[0].url, input, sep, frames: (await cdp('Page.getFrameTree')).frameTree.frame.id }
        } },
    ]
  })()`

  const added = await ask('POST', '/webmcp/custom-tools', { namespace: 'shop', source })

  assert.equal(added.status, 201, JSON.stringify(added.body))
  assert.deepEqual(
    added.body.tools.map((tool: { kind: string; namespace: string; tool: { name: string } }) => [
      tool.kind,
      tool.namespace,
      tool.tool.name,
    ]),
    [
      ['page', 'shop', 'heading'],
      ['cdp', 'shop', 'beside'],
    ],
  )
  for (const { id } of added.body.tools) assert.match(id, /^ct_[a-z][a-z0-9]{23}$/)
  assert.deepEqual((await ask('GET', '/webmcp/custom-tools')).body, added.body)
  // They come with the page.
  const findListed = async () => {
    const found = (await tools()).filter(({ source }) => source.custom && source.target_id === targetId)
    return found.length > 0 && found
  }
  const listed = await until('the custom tools', findListed, { limitSeconds: 60 })
  assert.deepEqual(
    listed.map(({ tool, source }) => [tool.name, source.target_id, source.page_url]),
    [
      ['heading', targetId, `${site}/custom?page=1`],
      ['beside', targetId, `${site}/custom?page=1`],
    ],
  )
  assert.equal(
    (await tools('?exclude_custom=true')).some(({ source }) => source.custom),
    false,
  )

  assert.deepEqual((await invoke('heading', { mark: '!' })).body.output, ['Custom!', 'from one source'])
  const failed = await invoke('heading', { mark: 'throw' })
  assert.deepEqual([failed.body.status, failed.body.error_text], ['error', 'Error: no mark'])
  assert.deepEqual((await invoke('beside', { a: 1 })).body.output, {
    title: 'Custom',
    url: `${site}/custom?page=1`,
    input: { a: 1 },
    sep: '/',
    frames: targetId,
  })
  const ended = await invoke('beside', { ends: true })
  assert.deepEqual([ended.status, ended.body.code], [504, 'outcome_unknown'])
  assert.equal((await invoke('beside')).body.output.title, 'Custom')

  const heading = await toolNamed('heading')
  const [{ id }] = added.body.tools
  assert.equal((await ask('DELETE', `/webmcp/custom-tools/${id}`)).status, 204)
  assert.equal((await ask('DELETE', `/webmcp/custom-tools/${id}`)).status, 404)
  assert.equal((await ask('POST', '/webmcp/invoke', { tool_ref: heading.tool_ref, input: {} })).status, 404)
})

test('either all custom tools of a request are added or none, and names are unique', async () => {
  const define = (...names: string[]) =>
    `[${names.map((name) => `{ kind: 'page', match: { url_patterns: ['*'] }, tool: { name: '${name}', description: 'd' }, execute() {} }`)}]`
  const add = (names: string[], force = false) =>
    ask('POST', '/webmcp/custom-tools', {
      namespace: 'once',
      source: define(...names),
      force_overwrite_namespace: force,
    })
  const names = async () =>
    (await ask('GET', '/webmcp/custom-tools')).body.tools
      .filter(({ namespace }: { namespace: string }) => namespace === 'once')
      .map(({ tool }: Tool) => tool.name)

  const racing = await Promise.all([add(['one']), add(['one']), add(['one'])])
  assert.deepEqual(racing.map(({ status }) => status).sort(), [201, 409, 409])
  const taken = await add(['two', 'one'])
  assert.deepEqual(
    [taken.status, taken.body.code, taken.headers.get('x-should-retry')],
    [409, 'custom_tool_name_taken', 'false'],
  )
  assert.deepEqual(await names(), ['one'])
  assert.deepEqual(
    (await add(['three'])).body.tools.map(({ tool }: Tool) => tool.name),
    ['three'],
  )
  assert.deepEqual(await names(), ['one', 'three'])
  assert.equal((await add(['one', 'four'], true)).status, 201)
  assert.deepEqual(await names(), ['one', 'four'])

  for (const [source, rule] of [
    ['(', /source: SyntaxError/],
    ['document.title', /source: ReferenceError/],
    ['[]', /source/],
    ['5', /list of objects/],
    [
      `[{ kind: 'other', match: { url_patterns: ['*'] }, tool: { name: 'a', description: 'd' }, execute() {} }]`,
      /kind/,
    ],
    [
      `[{ kind: 'page', match: { url_patterns: [] }, tool: { name: 'a', description: 'd' }, execute() {} }]`,
      /url_patterns/,
    ],
    [
      `[{ kind: 'page', match: { url_patterns: ['not a url'] }, tool: { name: 'a', description: 'd' }, execute() {} }]`,
      /URL pattern/,
    ],
    [`[{ kind: 'page', match: { url_patterns: ['*'] }, tool: { name: 'a', description: 'd' } }]`, /execute/],
    [define('five').replace(/\]$/, ', {}]'), /kind/],
  ] as const) {
    const refused = await ask('POST', '/webmcp/custom-tools', { namespace: 'bad', source })
    assert.equal(refused.status, 400, source)
    assert.match(refused.body.message, rule)
  }
  for (const body of [
    { source: '[]' },
    { namespace: 'a b', source: '[]' },
    { namespace: 'a', source: '' },
    { namespace: 'a', source: 'x'.repeat(8_000_001) },
  ]) {
    assert.equal((await ask('POST', '/webmcp/custom-tools', body)).status, 400)
  }
})

test('invalid calls of tools are refused with the name of the field', async () => {
  for (const [body, field] of [
    [{}, 'tool_ref'],
    [{ tool_ref: '' }, 'tool_ref'],
    [{ tool_ref: 'x'.repeat(129) }, 'tool_ref'],
    [{ tool_ref: 'x', input: [] }, 'input'],
    [{ tool_ref: 'x', timeout_sec: 121 }, 'timeout_sec'],
    [{ tool_ref: 'x', other: 1 }, 'other'],
    [{ tool_ref: 'x', input: { text: 'x'.repeat(1024 * 1024) } }, 'input'],
  ] as const) {
    const refused = await ask('POST', '/webmcp/invoke', body)
    assert.equal(refused.status, 400, field)
    assert.match(refused.body.message, new RegExp(field))
  }
  assert.equal(
    (await ask('POST', '/webmcp/invoke', { tool_ref: 'x', input: { text: 'x'.repeat(1100 * 1024) } })).status,
    413,
  )
})

async function shopTarget(): Promise<{ targetId: string }> {
  const { targetInfos } = await cdp.send('Target.getTargets')
  const found = (targetInfos as { targetId: string; url: string }[]).find(({ url }) => url.includes('/shop'))
  assert.ok(found)
  return found
}
