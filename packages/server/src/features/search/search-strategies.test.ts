import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import type { ProviderSlug } from '@berth/contract/search/provider-options.ts'
import type { Search, SearchProvider } from '@berth/contract/search/search.ts'
import { type Behaviour, FakeProviders, type ProviderCall } from '../../testing/fakes/fake-providers.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'

const fake = await FakeProviders.open()
const slugs = [
  ...(['brave', 'exa', 'tavily', 'serpapi', 'perplexity', 'parallel'] as const),
  ...(['you', 'valyu', 'context', 'octen', 'searxng'] as const),
]
const server = await TestServer.open({ search: fake.config(slugs, 1_000) })
after(async () => {
  await server.close()
  await fake.close()
})

interface Failure {
  readonly code: string
  readonly message: string
  readonly details?: readonly { readonly code: string; readonly message: string }[]
}
type Answer = Search & Failure

const search = (project: TestProject, body: object) => project.call<Answer>('POST', '/search', { query: 'q', ...body })
const pinned = (provider: ProviderSlug, options?: object) => ({
  strategy: { type: 'pinned', provider: { provider, ...(options && { options }) } },
})
const page = { url: 'https://a.example.com/one', text: 'The text of the page.' }
const other = { url: 'https://other.test/two', text: 'Another text.' }
const outcomes = ({ attempts }: Search) => attempts.map(({ provider, outcome }) => `${provider} ${outcome}`)
const codes = ({ warnings }: Search) => warnings.map(({ code, param }) => (param ? `${code} ${param}` : code))

beforeEach(() => {
  fake.calls.length = 0
  for (const slug of slugs) fake.hits(slug, page, other)
})

test('every provider is asked with its own API, and its results have one form', async () => {
  const project = await server.project()
  const body = {
    max_results: 2,
    ...{ country: 'de', language: 'pt-BR', safe_search: 'strict', start_date: '2026-01-01', end_date: '2026-02-03' },
    ...{ include_domains: ['Example.com'], exclude_domains: ['b.example.com'] },
  }
  const asked: Record<string, unknown> = {}
  for (const slug of slugs) {
    const { status, body: answer } = await search(project, { ...body, ...pinned(slug) })
    assert.equal(status, 200, JSON.stringify(answer))
    assert.equal(answer.provider, slug)
    const [result, ...rest] = answer.results
    assert.deepEqual([result?.id, result?.rank, result?.url, result?.title], ['r1', 1, page.url, 'A title'])
    assert.ok(result?.snippet && result.source)
    // Tavily returns it only for news, Context.dev never.
    assert.equal(typeof result.published_date, ['tavily', 'context'].includes(slug) ? 'object' : 'string')
    assert.deepEqual(rest, [], 'the other host was not asked for')
    assert.deepEqual(outcomes(answer), [`${slug} success`])
    const { method, path, query, body: sent } = fake.take(slug)
    asked[slug] = [method, path, method === 'GET' ? query : sent]
  }

  const sites = 'q site:example.com -site:b.example.com'
  assert.deepEqual(asked, {
    brave: [
      'GET',
      '/res/v1/web/search',
      {
        ...{ q: sites, count: '2', country: 'DE', search_lang: 'pt-br', safesearch: 'strict' },
        freshness: '2026-01-01to2026-02-03',
      },
    ],
    exa: [
      'POST',
      '/search',
      {
        ...{ query: 'q', numResults: 2, userLocation: 'DE', moderation: true, contents: { highlights: true } },
        ...{ startPublishedDate: '2026-01-01T00:00:00.000Z', endPublishedDate: '2026-02-03T23:59:59.999Z' },
        ...{ includeDomains: ['example.com'], excludeDomains: ['b.example.com'] },
      },
    ],
    tavily: [
      'POST',
      '/search',
      {
        ...{ query: 'q', max_results: 2, country: 'germany', language: 'pt' },
        ...{ start_date: '2026-01-01', end_date: '2026-02-03' },
        ...{ include_domains: ['example.com'], exclude_domains: ['b.example.com'] },
      },
    ],
    serpapi: [
      'GET',
      '/search.json',
      {
        ...{ engine: 'google', q: sites, num: '2', gl: 'de', hl: 'pt', safe: 'active' },
        ...{ tbs: 'cdr:1,cd_min:1/1/2026,cd_max:2/3/2026', api_key: 'key-of-serpapi' },
      },
    ],
    perplexity: [
      'POST',
      '/search',
      {
        ...{ query: 'q', max_results: 2, country: 'DE', search_language_filter: ['pt'] },
        ...{ search_after_date_filter: '1/1/2026', search_before_date_filter: '2/3/2026' },
        search_domain_filter: ['example.com'],
      },
    ],
    parallel: [
      'POST',
      '/v1/search',
      {
        objective: 'q',
        search_queries: ['q'],
        advanced_settings: {
          max_results: 2,
          location: 'de',
          source_policy: {
            ...{ include_domains: ['example.com'], exclude_domains: ['b.example.com'], after_date: '2026-01-01' },
          },
        },
      },
    ],
    you: [
      'POST',
      '/v1/search',
      {
        ...{ query: 'q', count: 2, country: 'DE', language: 'PT-BR', safesearch: 'strict' },
        freshness: '2026-01-01to2026-02-03',
        ...{ include_domains: ['example.com'], exclude_domains: ['b.example.com'] },
      },
    ],
    valyu: [
      'POST',
      '/v1/deepsearch',
      {
        ...{ query: 'q', max_num_results: 2, country_code: 'DE', start_date: '2026-01-01', end_date: '2026-02-03' },
        ...{ included_sources: ['example.com'], excluded_sources: ['b.example.com'] },
      },
    ],
    context: [
      'POST',
      '/web/search',
      {
        ...{ query: 'q', numResults: 10, country: 'de' },
        ...{ includeDomains: ['example.com'], excludeDomains: ['b.example.com'] },
      },
    ],
    octen: [
      'POST',
      '/search',
      {
        ...{ query: 'q', count: 2, language: ['pt'], safesearch: 'strict' },
        ...{ start_time: '2026-01-01T00:00:00Z', end_time: '2026-02-03T23:59:59Z' },
        ...{ include_domains: ['example.com'], exclude_domains: ['b.example.com'] },
      },
    ],
    searxng: ['GET', '/search', { format: 'json', q: sites, language: 'pt-BR', safesearch: '2' }],
  })
})

test('a parameter is supported as listed, or there is a warning', async () => {
  const project = await server.project()
  const { body: providers } = await project.call<SearchProvider[]>('GET', '/search/providers')
  const values: Record<string, unknown> = {
    ...{ country: 'US', language: 'en', safe_search: 'strict', recency: 'year', start_date: '2026-01-01' },
    ...{ end_date: '2026-02-01', include_domains: ['example.com'], exclude_domains: ['x.test'] },
  }
  const faults: string[] = []
  for (const { slug, params } of providers) {
    for (const [param, { support }] of Object.entries(params)) {
      const body = { [param]: values[param], ...pinned(slug as ProviderSlug) }
      const { body: answer } = await search(project, body)
      // A parameter that is emulated for some values is exact for others.
      const hasWarning = answer.warnings.some((warning) => warning.param === param && warning.provider === slug)
      if (support === 'native' ? hasWarning : support === 'unsupported' && !hasWarning) {
        faults.push(`${slug} ${param}: ${support}`)
      }
      const { status } = await search(project, { ...body, strict_params: true })
      if (status !== (hasWarning ? 400 : 200)) faults.push(`${slug} ${param}, strict: ${status}`)
    }
  }
  assert.deepEqual(faults, [])
})

/** The warnings of a request, one line for each rule. */
const warned: readonly (readonly [rule: string, body: object, codes: readonly string[]])[] = [
  ['nothing', { ...pinned('brave') }, []],
  [
    'more results than the provider gives',
    { ...pinned('brave'), max_results: 30 },
    ['max_results_clamped max_results'],
  ],
  ['the default where the provider gives less', { ...pinned('brave') }, []],
  ['a preference without a parameter', { ...pinned('exa'), language: 'en' }, ['preference_unsupported language']],
  [
    'a filter without a parameter',
    { ...pinned('searxng'), start_date: '2026-01-01' },
    ['param_unsupported start_date'],
  ],
  ['an hour where a day is the least', { ...pinned('tavily'), recency: 'hour' }, ['recency_emulated recency']],
  ['a period as a first day', { ...pinned('exa'), recency: 'week' }, ['recency_emulated recency']],
  [
    'recency beside dates',
    { ...pinned('brave'), recency: 'day', start_date: '2026-01-01' },
    ['date_filter_overridden start_date'],
  ],
  [
    'domains by operators',
    { ...pinned('brave'), include_domains: ['example.com'] },
    ['filter_emulated include_domains'],
  ],
  ['empty lists of domains', { ...pinned('brave'), include_domains: [], exclude_domains: [] }, []],
  [
    'more domains than the provider takes',
    {
      ...pinned('perplexity'),
      include_domains: ['example.com', ...Array.from({ length: 20 }, (_, at) => `d${at}.test`)],
    },
    ['domains_truncated include_domains'],
  ],
  ['a filter that is on or off', { ...pinned('serpapi'), safe_search: 'moderate' }, ['filter_emulated safe_search']],
  ['a filter that is off or strict', { ...pinned('octen'), safe_search: 'moderate' }, ['filter_emulated safe_search']],
  ['an hour where Context.dev has days', { ...pinned('context'), recency: 'hour' }, ['recency_emulated recency']],
]
for (const [rule, body, expected] of warned) {
  test(`warnings: ${rule}`, async () => {
    const { status, body: answer } = await search(await server.project(), body)

    assert.equal(status, 200, JSON.stringify(answer))
    assert.deepEqual(codes(answer), expected)
    const strict = await search(await server.project(), { ...body, strict_params: true })
    const isServed = expected.length === 0
    assert.deepEqual(
      [strict.status, strict.body.code],
      isServed ? [200, undefined] : [400, 'search_params_not_servable'],
    )
  })
}

test('strict parameters select the provider that supports them, in any order', async () => {
  const project = await server.project()
  const strategy = { type: 'fallback', providers: [{ provider: 'searxng' }, { provider: 'you' }] }

  const { body } = await search(project, { strategy, end_date: '2026-01-01', strict_params: true })

  assert.equal(body.provider, 'you')
  assert.deepEqual(codes(body), ['provider_ineligible end_date'])
})

test('auto chooses the provider that supports most parameters, with its options', async () => {
  const project = await server.project()
  const provider_options = [{ provider: 'you', options: { knowledge: 'core' } }]
  const body = { safe_search: 'moderate', include_domains: ['example.com'] }

  const { body: answer } = await search(project, { ...body, strategy: { type: 'auto', provider_options } })

  assert.equal(answer.provider, 'you')
  assert.equal(fake.take('you').body.knowledge, 'core')
  assert.equal((await search(project, {})).body.provider, 'brave', 'the first, where all are equal')
})

test('native counts only reduce the number of results', async () => {
  const project = await server.project()
  for (const [slug, options, sent] of [
    ['brave', { count: 1 }, (call: ProviderCall) => Number(call.query.count)],
    ['exa', { numResults: 1 }, (call: ProviderCall) => call.body.numResults],
    [
      'parallel',
      { advanced_settings: { max_results: 1 } },
      (call: ProviderCall) => call.body.advanced_settings.max_results,
    ],
    ['serpapi', { engine: 'google', num: 1 }, (call: ProviderCall) => Number(call.query.num)],
  ] as const) {
    const { body } = await search(project, { ...pinned(slug, options), max_results: 5 })
    assert.deepEqual([body.results.length, sent(fake.take(slug))], [1, 1], slug)
  }
  await search(project, { ...pinned('exa', { numResults: 50 }), max_results: 5 })
  assert.equal(fake.take('exa').body.numResults, 5)
})

/** Kinds of failures, with the reported code and whether the next provider is tried. */
const failures: readonly (readonly [way: string, Behaviour, outcome: string, code: string, retryable: boolean])[] = [
  ['limits requests', { kind: 'status', status: 429 }, 'error', 'rate_limited', true],
  ['is out of order', { kind: 'status', status: 503 }, 'error', 'provider_unavailable', true],
  ['refuses the request', { kind: 'status', status: 422 }, 'error', 'provider_rejected_request', false],
  ['refuses the key', { kind: 'status', status: 401 }, 'error', 'provider_unauthorized', false],
  ['is used up', { kind: 'status', status: 432 }, 'error', 'provider_quota_exceeded', false],
  ['says nothing', { kind: 'silent' }, 'timeout', 'timeout', true],
  ['stops in the middle', { kind: 'slow-body' }, 'timeout', 'timeout', true],
  ['hangs up', { kind: 'cut' }, 'error', 'provider_unavailable', true],
  ['answers in another form', { kind: 'wrong' }, 'error', 'invalid_response', true],
  ['answers no JSON', { kind: 'no-json' }, 'error', 'invalid_response', true],
  ['answers with too much', { kind: 'huge' }, 'error', 'response_too_large', true],
  ['sends elsewhere', { kind: 'redirect' }, 'error', 'provider_unavailable', true],
]
const fallback = { type: 'fallback', providers: [{ provider: 'tavily' }, { provider: 'brave' }] }
for (const [way, behaviour, outcome, code, retryable] of failures) {
  test(`a provider that ${way} is ${retryable ? 'followed by the next' : 'the last'}`, async () => {
    const project = await server.project()
    fake.behave('tavily', behaviour)

    const { status, body } = await search(project, { strategy: fallback })
    const alone = await search(project, pinned('tavily'))

    if (retryable) {
      const [first, second] = body.attempts
      assert.deepEqual([first?.outcome, first?.error_code, first?.retryable], [outcome, code, true])
      assert.deepEqual([status, second?.outcome, body.provider], [200, 'success', 'brave'])
      assert.deepEqual(
        body.results.map(({ url }) => url),
        [page.url, other.url],
      )
    } else assert.deepEqual([status, body.code, body.details?.length], [502, 'search_failed', 1])
    assert.deepEqual([alone.status, alone.body.code, alone.body.details?.[0]?.code], [502, 'search_failed', code])
    assert.equal(alone.headers.get('x-should-retry'), 'false')
  })
}

test('fallback_on selects the failures after which the next provider is asked', async () => {
  const project = await server.project()
  const outcomesWith = async (behaviour: Behaviour, fallback_on: readonly string[]) => {
    fake.behave('tavily', behaviour)
    const { status, body } = await search(project, { strategy: { ...fallback, fallback_on } })
    return status === 200 ? outcomes(body) : [status]
  }
  const empty: Behaviour = { kind: 'hits', hits: [] }
  const broken: Behaviour = { kind: 'status', status: 500 }

  assert.deepEqual(await outcomesWith(empty, ['error']), ['tavily empty'])
  assert.deepEqual(await outcomesWith(empty, ['empty']), ['tavily empty', 'brave success'])
  assert.deepEqual(await outcomesWith(broken, ['error']), ['tavily error', 'brave success'])
  assert.deepEqual(await outcomesWith(broken, ['timeout', 'empty']), [502])
  assert.deepEqual(await outcomesWith({ kind: 'silent' }, ['timeout']), ['tavily timeout', 'brave success'])
  assert.deepEqual(await outcomesWith(broken, []), [502])
})

test('without results, the first valid response is returned with all attempts', async () => {
  const project = await server.project()
  fake.behave('exa', { kind: 'status', status: 500 })
  fake.hits('tavily')
  fake.hits('serpapi')
  fake.behave('brave', { kind: 'cut' })
  const providers = ['exa', 'tavily', 'serpapi', 'brave'].map((provider) =>
    provider === 'serpapi' ? { provider, options: { engine: 'google' } } : { provider },
  )

  const { status, body } = await search(project, { strategy: { type: 'fallback', providers } })

  assert.deepEqual([status, body.provider, body.results], [200, 'tavily', []])
  assert.deepEqual(outcomes(body), ['exa error', 'tavily empty', 'serpapi empty', 'brave error'])
  assert.deepEqual(codes(body), ['fallback_failed', 'fallback_failed'])
})

test('there is no new attempt after the overall time', async () => {
  const project = await server.project()
  fake.behave('tavily', { kind: 'silent' })

  const { status, body } = await search(project, { strategy: fallback, timeout_ms: 200 })

  assert.deepEqual([status, body.details?.map(({ code }) => code)], [502, ['timeout']])
  assert.ok(fake.calls.every(({ slug }) => slug !== 'brave'))
})

test('no response and no log line contains the key of a provider', async () => {
  const project = await server.project()
  fake.behave('serpapi', { kind: 'status', status: 500 })
  const { body } = await search(project, pinned('serpapi', { engine: 'google' }))
  const { body: raw } = await search(project, { ...pinned('brave'), include_raw: true })

  assert.doesNotMatch(JSON.stringify([body, raw]), /key-of/)
  assert.ok(raw.raw && raw.results.every((result) => result.raw))
})

test('an invalid value is a 400 that names the field', async () => {
  const project = await server.project()
  for (const [field, body] of [
    ['query', { query: ' ' }],
    ['query', { query: 7 }],
    ['max_results', { max_results: 0 }],
    ['max_results', { max_results: 101 }],
    ['country', { country: 'USA' }],
    ['language', { language: 'english!' }],
    ['safe_search', { safe_search: 'on' }],
    ['recency', { recency: 'decade' }],
    ['start_date', { start_date: '2026-02-30' }],
    ['end_date', { start_date: '2026-02-01', end_date: '2026-01-01' }],
    ['include_domains', { include_domains: ['https://example.com/'] }],
    ['timeout_ms', { timeout_ms: 0 }],
    ['strategy', { strategy: { type: 'all' } }],
    ['strategy', { strategy: { type: 'pinned', provider: 'brave' } }],
    ['strategy', pinned('brave', { counts: 3 })],
    ['strategy', pinned('serpapi', { engine: 'bing' })],
    ['strategy', { strategy: { type: 'fallback', providers: [] } }],
    ['strategy', { strategy: { type: 'fallback', providers: [{ provider: 'exa' }, { provider: 'exa' }] } }],
    ['strategy', { strategy: { type: 'fallback', providers: [{ provider: 'exa' }], fallback_on: ['bad'] } }],
    ['strategy', pinned('parallel', { advanced_settings: { fetch_policy: { max_age_seconds: 60 } } })],
    ['strategy', pinned('you', { extraction: {} })],
    ['content', { content: { source: 'web' } }],
    ['content', { content: { format: 'html' } }],
    ['content', { content: { source: 'provider', browser: {} } }],
    ['content', { content: { browser: { browser_id: 'x' } } }],
    ['content', { content: { max_chars: 0 } }],
    ['content', { content: { browser: { mode: 'click' } } }],
  ] as const) {
    const { status, body: failure } = await search(project, body)
    assert.equal(status, 400, JSON.stringify(body))
    assert.ok(failure.message.startsWith(field), `${field}: ${failure.message}`)
  }
  assert.equal(fake.calls.length, 0)
})

test('a search is returned unchanged for 24 hours without asking a provider, and then removed', async () => {
  const project = await server.project()
  const { body: made } = await search(project, { include_raw: true })
  const path = `/search/${made.id}`
  fake.calls.length = 0

  assert.deepEqual((await project.call<Search>('GET', path)).body, made)
  assert.equal(Date.parse(made.expires_at) - server.clock.now().getTime(), 24 * 60 * 60 * 1000)
  server.clock.advance(24 * 60 * 60 - 1)
  assert.equal((await project.call('GET', path)).status, 200)
  server.clock.advance(1)
  assert.equal((await project.call<Failure>('GET', path)).body.code, 'search_not_found')
  assert.equal((await project.call<Failure>('POST', `${path}/contents`)).status, 404)
  assert.equal(fake.calls.length, 0)

  const count = () =>
    server.database
      .selectFrom('searches')
      .select('id')
      .where('id', '=', made.id as never)
      .execute()
  assert.equal((await count()).length, 1)
  await server.services.searchExpiry.run()
  assert.equal((await count()).length, 0)
})

test('providers are listed, and one is returned with the schema of its options', async () => {
  const project = await server.project()
  const { body: all, headers } = await project.call<SearchProvider[]>('GET', '/search/providers')
  const { body: one } = await project.call<SearchProvider[]>('GET', '/search/providers?slug=tavily')

  assert.deepEqual(
    all.map(({ slug }) => slug),
    slugs,
  )
  assert.equal(headers.get('x-has-more'), null)
  assert.deepEqual([one.length, one[0]?.slug, one[0]?.max_results_cap], [1, 'tavily', 20])
  assert.deepEqual(one[0]?.content, { freshness_control: false, inline: true, post_hoc: true })
  const schema = one[0]?.provider_options.schema as { properties: object }
  assert.ok('search_depth' in schema.properties)
  assert.equal((await project.call('GET', '/search/providers?slug=google')).status, 400)
})

test('a provider that is not configured is skipped with a warning, and strict parameters do not change that', async () => {
  const small = await TestServer.open({ search: fake.config(['brave'], 1_000) })
  try {
    const project = await small.project()
    const strategy = { type: 'fallback', providers: [{ provider: 'octen' }, { provider: 'brave' }] }

    const answers = [await search(project, { strategy }), await search(project, { strategy, strict_params: true })]

    for (const { status, body } of answers) {
      assert.deepEqual([status, body.provider, codes(body)], [200, 'brave', ['provider_ineligible']])
    }
  } finally {
    await small.close()
  }
})

test('Context.dev and Octen return whole pages, in the requested form and age', async () => {
  const project = await server.project()
  const content = { source: 'provider', format: 'markdown', max_age_hours: 2 }
  const asked: Record<string, unknown> = {}

  for (const slug of ['context', 'octen'] as const) {
    const { body } = await search(project, { content, recency: 'week', ...pinned(slug) })
    const [result] = body.results
    assert.deepEqual(
      [result?.content?.status, result?.content?.text, result?.content?.method],
      ['ok', page.text, 'provider'],
    )
    asked[slug] = fake.take(slug).body
  }

  assert.deepEqual(asked, {
    context: {
      ...{ query: 'q', numResults: 10, freshness: 'last_week' },
      markdownOptions: { enabled: true, maxAgeMs: 7_200_000 },
    },
    octen: {
      ...{ query: 'q', count: 10, time_range: 'week', format: 'markdown' },
      full_content: { enable: true, max_tokens: 100_000 },
    },
  })
})

test('without any provider a search is a 502 that names the settings', async () => {
  const bare = await TestServer.open()
  try {
    const project = await bare.project()
    const { status, body } = await search(project, {})
    assert.deepEqual([status, body.code], [502, 'search_failed'])
    assert.match(body.message, /BERTH_SEARCH_BRAVE_KEY.*BERTH_SEARCH_SEARXNG_URL/)
    const one = await search(project, pinned('exa'))
    assert.match(one.body.message, /BERTH_SEARCH_EXA_KEY/)
    assert.deepEqual((await project.call('GET', '/search/providers')).body, [])
  } finally {
    await bare.close()
  }
})
