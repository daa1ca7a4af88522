import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { FetchPageReply, FetchPageRequest } from '@berth/contract/agent/agent-endpoints.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { ResultContent, Search, SearchContents } from '@berth/contract/search/search.ts'
import { FakeProviders } from '../../testing/fakes/fake-providers.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'

const fake = await FakeProviders.open()
const server = await TestServer.open({ search: fake.config(['brave', 'exa', 'tavily', 'parallel'], 2_000) })
after(async () => {
  await server.close()
  await fake.close()
})

const long = 'A sentence of the article that is long enough to be read. '.repeat(8)
const html = (body: string, title = 'The title') =>
  `<!doctype html><html><head><title>${title}</title></head><body><nav>Home Shop</nav><main><h1>${title}</h1>${body}</main></body></html>`

interface FakePage extends Partial<FetchPageReply> {
  readonly body?: string | Buffer
  readonly failure?: string
  readonly silent?: boolean
}

/** The responses of web pages, by URL and mode. */
const web = new Map<string, FakePage>()
let fetched: FetchPageRequest[] = []

async function fetchFake(request: FetchPageRequest): Promise<FetchPageReply> {
  fetched.push(request)
  const page = web.get(`${request.mode} ${request.url}`) ?? web.get(request.url)
  if (!page || page.failure) throw new BerthError('curl_failed', { reason: page?.failure ?? 'ERR_NAME_NOT_RESOLVED' })
  if (page.silent) await new Promise(() => {})
  const { body = '', ...answer } = page
  return {
    ...{
      status: 200,
      content_type: 'text/html; charset=utf-8',
      final_url: request.url,
      is_cut: false,
      is_loaded: true,
    },
    ...{ body_b64: Buffer.from(body).toString('base64') },
    ...answer,
  }
}

beforeEach(() => {
  fake.calls.length = 0
  fetched = []
  web.clear()
  server.host.fetchPage = fetchFake
})

const urlOf = (name: string) => `https://site.test/${name}`
const searchFor = async (project: TestProject, content: unknown, names: readonly string[], provider = 'brave') => {
  const hits = names.map((name) => ({ url: urlOf(name), text: `Text of the provider on ${name}.` }))
  fake.hits(provider as 'brave', ...hits)
  const { status, body } = await project.call<Search>('POST', '/search', {
    query: 'q',
    content,
    strategy: { type: 'pinned', provider: { provider } },
  })
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
const contentOf = async (project: TestProject, name: string, options: object = {}, provider = 'brave') => {
  const search = await searchFor(project, options, [name], provider)
  return { search, content: search.results[0]?.content as ResultContent }
}
const sessions = async (project: TestProject) => (await project.call<unknown[]>('GET', '/browsers')).body

test('without requested contents no browser starts, and content of the provider is returned', async () => {
  const project = await server.project()
  const search = await searchFor(project, undefined, ['a'], 'parallel')

  const [result] = search.results
  assert.deepEqual([result?.content?.method, result?.content?.completeness], ['provider', 'excerpt'])
  assert.equal(search.usage.content_fetches, 0)
  assert.equal(fetched.length, 0)
  assert.equal((await searchFor(project, undefined, ['a'])).results[0]?.content, undefined)
})

test('a page is fetched by a temporary browser, which ends before the response', async () => {
  const project = await server.project()
  web.set(urlOf('a'), { body: html(`<p>${long}</p>`), final_url: urlOf('there') })
  const before = server.host.machines.size

  const { search, content } = await contentOf(project, 'a')

  const { text, fetched_at, extractor_version, ...rest } = content
  assert.deepEqual(rest, {
    ...{ status: 'ok', format: 'markdown', method: 'browser_curl', cache_status: 'miss', completeness: 'full_page' },
    ...{ truncated: false, http_status: 200, final_url: urlOf('there') },
  })
  assert.match(text ?? '', /^#+ The title\n\nA sentence/)
  assert.doesNotMatch(text ?? '', /Shop/)
  assert.ok(fetched_at && extractor_version)
  assert.deepEqual([search.usage.content_fetches, search.warnings], [1, []])
  assert.equal(server.host.machines.size, before)
  assert.deepEqual(await sessions(project), [])
})

/** The reported result of a page, one line for each rule. */
const pages: readonly (readonly [rule: string, FakePage, options: object, expected: Partial<ResultContent>])[] = [
  ['text', { body: html(`<p>${long}</p>`) }, { format: 'text' }, { status: 'ok', format: 'text' }],
  ['not found', { body: html('<p>no</p>'), status: 404 }, {}, { status: 'unavailable', http_status: 404 }],
  ['gone wrong', { body: '', status: 500 }, {}, { status: 'unavailable', http_status: 500 }],
  ['refused', { body: html('<p>no</p>'), status: 403 }, {}, { status: 'blocked', http_status: 403 }],
  ['too many requests', { body: '', status: 429 }, {}, { status: 'blocked', http_status: 429 }],
  [
    'a challenge',
    { body: '<html><title>Just a moment...</title><body><div class="cf-turnstile"></div></body></html>', status: 200 },
    {},
    { status: 'blocked', method: 'browser_render' },
  ],
  [
    'an image',
    { body: Buffer.from([0x89, 0x50, 0, 0]), content_type: 'image/png' },
    {},
    { status: 'unsupported_type' },
  ],
  ['bytes without a type', { body: Buffer.from([0, 1, 2]), content_type: null }, {}, { status: 'unsupported_type' }],
  [
    'an empty page',
    { body: '<html><body></body></html>' },
    {},
    { status: 'extraction_failed', method: 'browser_render' },
  ],
  ['no such host', { failure: 'ERR_NAME_NOT_RESOLVED' }, {}, { status: 'error', method: 'browser_curl' }],
  ['late', { failure: 'ERR_TIMED_OUT' }, {}, { status: 'timeout' }],
  ['silent', { silent: true }, { timeout_ms: 300 }, { status: 'timeout' }],
  [
    'cut',
    { body: html(`<p>${long}</p>`), is_cut: true },
    {},
    { status: 'ok', completeness: 'excerpt', truncated: false },
  ],
  [
    'not loaded whole',
    { body: html(`<p>${long}</p>`), is_loaded: false },
    { browser: { mode: 'render' } },
    { status: 'ok', completeness: 'unknown', method: 'browser_render' },
  ],
  [
    'cut to characters',
    { body: 'ab😀d', content_type: 'text/plain' },
    { max_chars: 3 },
    { status: 'ok', text: 'ab😀', truncated: true, completeness: 'full_page' },
  ],
  [
    'no longer than the limit',
    { body: 'ab😀d', content_type: 'text/plain' },
    { max_chars: 4 },
    { status: 'ok', text: 'ab😀d', truncated: false },
  ],
  ['JSON', { body: '{"a":1}', content_type: 'application/json' }, {}, { status: 'ok', text: '{"a":1}' }],
  [
    'an encoding of the header',
    { body: Buffer.from('naïve', 'latin1'), content_type: 'text/plain; charset=iso-8859-1' },
    {},
    { text: 'naïve' },
  ],
  ['UTF-8 without a word', { body: 'naïve', content_type: 'text/plain' }, {}, { text: 'naïve' }],
]
for (const [rule, page, options, expected] of pages) {
  test(`contents: ${rule}`, async () => {
    const project = await server.project()
    web.set(urlOf('x'), page)

    const { search, content } = await contentOf(project, 'x', { source: 'browser', ...options })

    const told = Object.fromEntries(Object.keys(expected).map((key) => [key, content[key as keyof ResultContent]]))
    assert.deepEqual(told, expected, JSON.stringify(content))
    const isOk = content.status === 'ok'
    assert.equal(content.text !== undefined, isOk)
    assert.deepEqual([content.error === undefined, search.warnings.length], [isOk, isOk ? 0 : 1])
    if (!isOk) assert.deepEqual([search.warnings[0]?.code, search.warnings[0]?.result_id], ['content_partial', 'r1'])
    assert.deepEqual(await sessions(project), [])
  })
}

test('a page that needs scripts is rendered, unless the caller has chosen', async () => {
  const project = await server.project()
  web.set(`curl ${urlOf('app')}`, {
    body: '<html><body><div id="root"></div><script src="app.js"></script></body></html>',
  })
  web.set(`render ${urlOf('app')}`, { body: html(`<p>${long}</p>`) })

  const { content } = await contentOf(project, 'app')
  const { content: plain } = await contentOf(project, 'app', { source: 'browser', browser: { mode: 'curl' } })

  assert.deepEqual([content.status, content.method], ['ok', 'browser_render'])
  assert.deepEqual([plain.status, plain.method], ['extraction_failed', 'browser_curl'])
})

test('the cache belongs to a project, and its age is limited by the caller', async () => {
  const [project, stranger] = [await server.project(), await server.project()]
  web.set(urlOf('c'), { body: html(`<p>${long}</p>`) })
  const statusOf = async (who: TestProject, options: object = {}) =>
    (await contentOf(who, 'c', options)).content.cache_status

  assert.equal(await statusOf(project), 'miss')
  assert.equal(await statusOf(project), 'hit')
  assert.equal(await statusOf(project, { format: 'text', max_chars: 5 }), 'hit')
  assert.equal(await statusOf(stranger), 'miss')
  assert.equal(await statusOf(project, { browser: { mode: 'render' } }), 'miss', 'by another method')
  server.clock.advance(2 * 60 * 60)
  assert.equal(await statusOf(project, { max_age_hours: 1 }), 'miss')
  assert.equal(await statusOf(project, { max_age_hours: 1 }), 'hit')
  assert.equal(await statusOf(project, { max_age_hours: 0 }), 'bypass')
  assert.equal((await contentOf(project, 'missing')).content.cache_status, 'miss')

  const stored = await server.database.selectFrom('page_contents').selectAll().execute()
  assert.doesNotMatch(Buffer.concat(stored.map(({ sealed_content }) => sealed_content)).toString(), /sentence/)
  server.clock.advance(8 * 24 * 60 * 60)
  await server.services.searchExpiry.run()
  assert.deepEqual(await server.database.selectFrom('page_contents').selectAll().execute(), [])
})

test('a given browser is used without changes, not ended, and its pages are not cached', async () => {
  const project = await server.project()
  const session = await project.session()
  web.set(urlOf('own'), { body: html(`<p>${long}</p>`) })
  const browser = { browser_id: session.session_id, mode: 'render' }

  const { content } = await contentOf(project, 'own', { source: 'browser', browser })
  const { content: again } = await contentOf(project, 'own', { source: 'browser', browser })

  assert.deepEqual([content.status, content.method, content.cache_status], ['ok', 'browser_render', 'bypass'])
  assert.equal(again.cache_status, 'bypass')
  assert.equal(server.host.agentOf(session.session_id as never).fetched.length, 2)
  assert.equal((await sessions(project)).length, 1)
  assert.equal((await contentOf(project, 'own')).content.cache_status, 'miss')
})

test('an unknown or foreign browser is a 404 before any request', async () => {
  const [project, stranger] = [await server.project(), await server.project()]
  const foreign = await stranger.session()
  for (const browser_id of [foreign.session_id, 'nobody']) {
    const body = { query: 'q', content: { source: 'browser', browser: { browser_id } } }
    const { status, body: failure } = await project.call<{ code: string }>('POST', '/search', body)
    assert.deepEqual([status, failure.code], [404, 'session_not_found'])
  }
  assert.equal(fake.calls.length, 0)
})

test('content is taken from the provider on request, and when a browser fails', async () => {
  const project = await server.project()
  web.set(urlOf('good'), { body: html(`<p>${long}</p>`) })

  const only = await searchFor(project, { source: 'provider' }, ['good'], 'tavily')
  const none = await searchFor(project, { source: 'provider' }, ['good'], 'brave')
  const both = await searchFor(project, true, ['good', 'bad'], 'exa')
  const browser = await searchFor(project, { source: 'browser' }, ['bad'], 'exa')

  assert.deepEqual([only.results[0]?.content?.status, only.results[0]?.content?.method], ['ok', 'provider'])
  assert.equal(none.results[0]?.content?.status, 'unavailable')
  assert.deepEqual(
    both.results.map(({ content }) => content?.method),
    ['browser_curl', 'provider'],
  )
  assert.equal(browser.results[0]?.content?.status, 'error')
})

test('a failing page fails nothing else, and finished pages are returned at the time limit', async () => {
  const project = await server.project()
  web.set(urlOf('1'), { body: html(`<p>${long}</p>`) })
  web.set(urlOf('2'), { silent: true })
  web.set(urlOf('3'), { body: html(`<p>${long}</p>`) })
  fake.hits('brave', ...['1', '2', '3'].map((name) => ({ url: urlOf(name) })))

  const { status, body } = await project.call<Search>('POST', '/search', {
    ...{ query: 'q', timeout_ms: 2_500, content: { source: 'browser' } },
    strategy: { type: 'pinned', provider: { provider: 'brave' } },
  })

  assert.equal(status, 200)
  assert.deepEqual(
    body.results.map(({ content }) => content?.status),
    ['ok', 'timeout', 'ok'],
  )
  assert.deepEqual(await sessions(project), [])
})

test('temporary browsers count among the sessions of their project', async () => {
  const project = await server.project()
  await project.call('PATCH', '/org/limits', { default_project_max_concurrent_sessions: 1 })
  const session = await project.session()
  web.set(urlOf('a'), { body: html(`<p>${long}</p>`) })

  const full = await contentOf(project, 'a', { source: 'browser' })
  assert.deepEqual([full.content.status, full.content.error?.code], ['error', 'session_limit_reached'])
  await project.call('DELETE', `/browsers/${session.session_id}`)
  assert.equal((await contentOf(project, 'a', { source: 'browser' })).content.status, 'ok')
})

test('a temporary browser ends when its caller disconnects or its start fails', async () => {
  const project = await server.project()
  web.set(urlOf('a'), { silent: true })
  fake.hits('brave', { url: urlOf('a') })
  const leave = new AbortController()
  const others = server.host.machines.size
  const body = {
    query: 'q',
    content: { source: 'browser' },
    strategy: { type: 'pinned', provider: { provider: 'brave' } },
  }
  const asked = Promise.withResolvers<void>()
  server.host.fetchPage = async () => {
    asked.resolve()
    return new Promise(() => {})
  }
  const call = project.call('POST', '/search', body, { signal: leave.signal }).catch(() => 'left')
  await asked.promise
  assert.equal((await sessions(project)).length, 1)
  leave.abort()
  assert.equal(await call, 'left')
  // The remaining sessions end in the background.
  while (server.host.machines.size > others) await delay(10)
  assert.deepEqual(await sessions(project), [])

  server.host.failNextStart('no memory')
  const { content } = await contentOf(project, 'a', { source: 'browser' })
  assert.deepEqual([content.status, content.error?.code], ['error', 'session_start_failed'])
  assert.deepEqual(await sessions(project), [])
})

test('contents of an earlier search are selected by rank or id, and do not change the search', async () => {
  const project = await server.project()
  for (const name of ['1', '2', '3']) web.set(urlOf(name), { body: html(`<p>${name} ${long}</p>`) })
  const search = await searchFor(project, undefined, ['1', '2', '3'])
  const path = `/search/${search.id}/contents`
  const contents = (body?: object) => project.call<SearchContents & { message: string }>('POST', path, body)

  const first = await contents({ limit: 2, content: { format: 'text' } })
  const named = await contents({ result_ids: ['r3', 'r1'] })
  const all = await contents()

  assert.equal(first.status, 200)
  assert.deepEqual(Object.keys(first.body).toSorted(), ['contents', 'search_id', 'usage', 'warnings'])
  assert.deepEqual(
    first.body.contents.map(({ result_id, url, status, format }) => [result_id, url, status, format]),
    ['1', '2'].map((name) => [`r${name}`, urlOf(name), 'ok', 'text']),
  )
  assert.deepEqual(first.body.usage, { content_fetches: 2, results_count: 2 })
  assert.deepEqual(
    named.body.contents.map(({ result_id, cache_status }) => [result_id, cache_status]),
    [
      ['r3', 'miss'],
      ['r1', 'hit'],
    ],
  )
  assert.equal(all.body.contents.length, 3)
  assert.deepEqual((await project.call<Search>('GET', `/search/${search.id}`)).body, search)

  for (const [field, body] of [
    ['limit', { limit: 1, result_ids: ['r1'] }],
    ['limit', { limit: 0 }],
    ['result_ids', { result_ids: ['r9'] }],
    ['content.source', { content: { source: 'provider' } }],
  ] as const) {
    const { status, body: failure } = await contents(body)
    assert.equal(status, 400)
    assert.ok(failure.message.startsWith(field), failure.message)
  }
})

test('later contents are taken from a provider that supports them', async () => {
  const project = await server.project()
  const search = await searchFor(project, undefined, ['1', '2'], 'tavily')
  fake.hits('tavily', { url: urlOf('1'), text: 'Extracted.' })
  const contents = (body: object) => project.call<SearchContents>('POST', `/search/${search.id}/contents`, body)

  const { body } = await contents({ content: { source: 'provider' } })
  assert.deepEqual(
    body.contents.map(({ status, text, method }) => [status, text, method]),
    [
      ['ok', 'Extracted.', 'provider'],
      ['unavailable', undefined, 'provider'],
    ],
  )
  assert.equal(fake.take('tavily').path, '/extract')

  fake.behave('tavily', { kind: 'status', status: 429 })
  const { status, body: limited } = await contents({ content: { source: 'provider' } })
  assert.deepEqual([status, limited.contents[0]?.error?.code], [200, 'rate_limited'])
})

test('the language of a search is that of its pages', async () => {
  const project = await server.project()
  web.set(urlOf('a'), { body: html(`<p>${long}</p>`) })
  fake.hits('brave', { url: urlOf('a') })
  await project.call('POST', '/search', { query: 'q', language: 'de-CH', content: { source: 'browser' } })

  assert.equal(fetched[0]?.accept_language, 'de-CH')
})

test('a temporary browser uses a machine of the reserve, if there is one', async (context) => {
  const ready = await TestServer.open({ search: fake.config(['brave'], 2_000), reserve: { headless: 1 } })
  context.after(() => ready.close())
  ready.host.fetchPage = fetchFake
  const { reserve } = ready.services
  while (reserve.sizes.headless === 0) {
    await reserve.refill()
    await delay(20)
  }
  const project = await ready.project()
  web.set(urlOf('a'), { body: html(`<p>${long}</p>`) })

  const { content } = await contentOf(project, 'a')

  assert.deepEqual([content.status, content.method], ['ok', 'browser_curl'])
  assert.equal(reserve.claims.get('headless'), 1)
  assert.equal(ready.host.machines.size, 0, 'and it ends before the response')
})
