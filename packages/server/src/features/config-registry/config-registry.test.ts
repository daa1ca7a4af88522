import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import type { AnalysisId } from '@berth/contract/common/ids.ts'
import type {
  AnalysisSummary,
  ConfigRegistryResponse,
  LookupResponse,
  NoRecommendation,
  Recommendation,
  RecommendationSummary,
} from '@berth/contract/config-registry/config-registry.ts'
import { FakeSite } from '../../testing/fakes/fake-site.ts'
import { type ApiAnswer, type TestProject, TestServer } from '../../testing/server-test.ts'

const server = await TestServer.open({ configRegistry: { perProject: 2, perSiteAndHour: 3, pauseMilliseconds: 1 } })
after(() => server.close())
const site = new FakeSite(server)
afterEach(() => {
  site.see = () => ({})
  site.robots = { status: 404, body: '' }
  site.visits.length = 0
})

let sites = 0
/** A site for one test only, because results about a site are shared by all projects. */
const newHost = () => `site-${++sites}.example`

const resolve = (project: TestProject, body: unknown) =>
  project.call<ConfigRegistryResponse>('POST', '/config-registry/resolve', body)
const lookUp = (project: TestProject, body: unknown) =>
  project.call<LookupResponse>('POST', '/config-registry/lookup', body)
const get = (project: TestProject, id: string) =>
  project.call<ConfigRegistryResponse>('GET', `/config-registry/analyses/${id}`)
const run = (id: string, signal = new AbortController().signal) =>
  server.services.analysisRunner.run(id as AnalysisId, signal)
const messageOf = ({ body }: ApiAnswer<unknown>) => (body as { message: string }).message
const idOf = ({ body }: ApiAnswer<ConfigRegistryResponse>) => body.analysis?.id ?? assert.fail(JSON.stringify(body))
const sessionsOf = async (project: TestProject) => (await project.call<unknown[]>('GET', '/browsers')).body

/** Resolves the target and runs the job. */
async function analyse(project: TestProject, body: unknown): Promise<ConfigRegistryResponse> {
  const id = idOf(await resolve(project, body))
  await run(id)
  return (await get(project, id)).body
}

const url = 'https://never.example/'
const refused: readonly (readonly [what: string, path: 'lookup' | 'resolve' | 'both', body: unknown, rule: RegExp])[] =
  [
    ['no url', 'both', {}, /^url: /],
    ['a url that is none', 'both', { url: 'example.com' }, /^url: must be an http or https/],
    ['another scheme', 'both', { url: 'ftp://example.com/' }, /^url: must be an http or https/],
    ['credentials in the url', 'both', { url: 'https://a:b@example.com/' }, /^url: .*credentials/],
    ['a long url', 'both', { url: `https://example.com/${'a'.repeat(2048)}` }, /^url: .*2048/],
    ['a url that becomes long', 'both', { url: `https://example.com/${'é'.repeat(1000)}` }, /^url: .*percent/],
    ['a private address', 'both', { url: 'http://10.0.0.1/' }, /^url: .*public/],
    ['a private address in disguise', 'both', { url: 'http://0x7f.1/' }, /^url: .*public/],
    ['a private IPv6 address', 'both', { url: 'http://[fd00::1]/' }, /^url: .*public/],
    ['the host itself', 'both', { url: 'http://localhost:80/' }, /^url: .*public/],
    ['a country that is none', 'both', { url, allowed_proxy_countries: ['XX'] }, /^allowed_proxy_countries.0: .*ISO/],
    ['countries that are no list', 'both', { url, allowed_proxy_countries: 'US' }, /^allowed_proxy_countries: /],
    ['an empty intent', 'resolve', { url, intent: '  ' }, /^intent: must not be empty/],
    ['a long intent', 'resolve', { url, intent: 'x'.repeat(4001) }, /^intent: .*4000/],
    ['an intent by http', 'resolve', { url: 'http://never.example/', intent: 'buy' }, /^url: must be https/],
  ]
for (const [what, path, body, rule] of refused) {
  test(`${what} is refused`, async () => {
    const project = await server.project()
    for (const call of path === 'both' ? [resolve, lookUp] : [resolve]) {
      const answer = await call(project, body)

      assert.equal(answer.status, 400, JSON.stringify(answer.body))
      assert.match(messageOf(answer), rule)
    }
    assert.deepEqual((await project.call('GET', '/config-registry/analyses')).body, [])
  })
}

test('a lookup returns the canonical target, and starts no analysis', async () => {
  const project = await server.project()
  const host = newHost()

  const { status, body } = await lookUp(project, { url: `HTTPS://Sub.${host}.:443/A/../b?c=1#d` })

  assert.equal(status, 200)
  const target = { domain: host, host: `sub.${host}`, normalized: `https://sub.${host}/b` }
  assert.deepEqual(body, { target, recommendation: null, working_configurations: [], guidance: null })
  assert.deepEqual((await project.call('GET', '/config-registry')).body, [])
})

test('an analysis recommends the cheapest browser that works, with its evidence, and ends its sessions', async () => {
  const project = await server.project()
  const host = newHost()
  const before = server.clock.now()

  const started = await resolve(project, { url: `https://${host}/shop?q=1` })
  const running = await get(project, idOf(started))
  await run(idOf(started))
  const done = await get(project, idOf(started))

  assert.equal(started.status, 200)
  assert.deepEqual(started.body.analysis, {
    id: idOf(started),
    created_at: before.toISOString(),
    expires_at: new Date(before.getTime() + 45 * 60_000).toISOString(),
    finished_at: null,
    failure: null,
    status: 'running',
  })
  assert.deepEqual(running.body, started.body)
  assert.equal(started.body.recommendation, null)
  const recommendation: Recommendation = {
    type: 'recommendation',
    browser: { gpu: false, headless: true, stealth: false, viewport: { width: 1920, height: 1080, refresh_rate: 25 } },
    proxy: { mode: 'direct' },
    evidence: {
      ...{ accessed: 1, blocked: 0, inconclusive: 0, sample_size: 1, run_count: 1, success_rate: 1 },
      last_observed_at: before.toISOString(),
      last_supported_at: before.toISOString(),
    },
    match_scope: 'exact',
    matched_target: `https://${host}/shop`,
  }
  assert.deepEqual(done.body.recommendation, recommendation)
  assert.equal(done.body.analysis?.status, 'completed')
  assert.equal(done.body.analysis?.finished_at, before.toISOString())
  assert.equal(done.body.working_configurations.length, 2)
  assert.equal(done.body.workload_outcome, null)
  assert.deepEqual(
    site.visits.map(({ headless, stealth, proxy }) => [headless, stealth, proxy]),
    [
      [true, false, 'direct'],
      [false, true, 'direct'],
    ],
  )
  assert.deepEqual(await sessionsOf(project), [])
  const rows = await server.database.selectFrom('config_runs').select('visit').where('host', '=', host).execute()
  assert.deepEqual(rows, [{ visit: null }, { visit: null }], 'what pages said is not kept')
})

type Browser = Parameters<FakeSite['see']>[0]
const challenge = { status: 403, title: 'Just a moment...', text: '' }
const shownIf = (isShown: (browser: Browser) => boolean) => (browser: Browser) => (isShown(browser) ? {} : challenge)
const kinds: readonly (readonly [
  what: string,
  see: FakeSite['see'],
  request: object,
  recommended: string | NoRecommendation['code'],
])[] = [
  [
    'that keeps plain headless browsers out',
    shownIf(({ headless, stealth }) => !headless || stealth),
    {},
    'headless stealth direct',
  ],
  ['that keeps headless browsers out', shownIf(({ headless }) => !headless), {}, 'headful direct'],
  [
    'that shows itself to stealth alone',
    shownIf(({ headless, stealth }) => !headless && stealth),
    {},
    'headful stealth direct',
  ],
  ['that blocks the address', shownIf(({ proxy }) => proxy !== 'direct'), {}, 'headless isp US'],
  ['that wants a country', shownIf(({ proxy }) => proxy.endsWith('FR')), {}, 'headless residential FR'],
  [
    'that wants a country which is allowed',
    shownIf(({ proxy }) => proxy.endsWith('FR')),
    { allowed_proxy_countries: ['fr', 'FR'] },
    'headless residential FR',
  ],
  [
    'that wants a country which is not allowed',
    shownIf(({ proxy }) => proxy.endsWith('FR')),
    { allowed_proxy_countries: ['DE'] },
    'proxy_restricted',
  ],
  [
    'that wants a proxy where none is allowed',
    shownIf(({ proxy }) => proxy !== 'direct'),
    { allowed_proxy_countries: [] },
    'proxy_restricted',
  ],
  ['that keeps everybody out', () => challenge, {}, 'no_working_configuration'],
  ['with nothing on its page', () => ({ text: '' }), {}, 'inconclusive'],
  ['without such a page', () => ({ status: 404 }), {}, 'target_not_evaluable'],
  ['that cannot be reached', () => ({ status: null, failure: 'ERR_NAME_NOT_RESOLVED' }), {}, 'target_not_evaluable'],
]
for (const [what, see, request, recommended] of kinds) {
  test(`for a site ${what}, the analysis recommends ${recommended}`, async () => {
    const project = await server.project()
    const target = `https://${newHost()}/`
    site.see = see

    const { analysis, recommendation, working_configurations } = await analyse(project, { url: target, ...request })

    assert.equal(analysis?.status, 'completed')
    assert.equal(summaryOf(recommendation), recommended)
    assert.equal(working_configurations.length > 0, recommendation?.type === 'recommendation')
    assert.deepEqual(await sessionsOf(project), [])
    assert.deepEqual((await project.call('GET', '/proxies')).body, [])
  })
}

function summaryOf(recommendation: ConfigRegistryResponse['recommendation']): string {
  if (recommendation?.type !== 'recommendation') return recommendation?.code ?? 'nothing'
  const { browser, proxy } = recommendation
  const route = proxy.mode === 'direct' ? 'direct' : `${proxy.create.type} ${proxy.create.config?.country}`
  return [browser.headless ? 'headless' : 'headful', browser.stealth && 'stealth', route].filter(Boolean).join(' ')
}

const walls: readonly (readonly [what: string, see: object, guidance: RegExp])[] = [
  ['login', { title: 'Log in', text: 'Sign in to go on', hasPasswordField: true }, /login/],
  ['payment', { status: 402, text: 'Payment required' }, /payment/],
]
for (const [what, see, guidance] of walls) {
  test(`a ${what} wall in every browser does not recommend another browser`, async () => {
    site.see = () => see

    const answer = await analyse(await server.project(), { url: `https://${newHost()}/` })

    assert.equal(summaryOf(answer.recommendation), 'headless direct')
    assert.match(answer.guidance ?? '', guidance)
  })
}

const robots: readonly (readonly [what: string, answer: FakeSite['robots'], code: string | undefined])[] = [
  ['disallows the page', { status: 200, body: 'User-agent: *\nDisallow: /private' }, 'target_not_evaluable'],
  ['disallows berth', { status: 200, body: 'User-agent: berth\nDisallow: /' }, 'target_not_evaluable'],
  ['disallows others', { status: 200, body: 'User-agent: other\nDisallow: /' }, undefined],
  ['disallows other pages', { status: 200, body: 'User-agent: *\nDisallow: /else' }, undefined],
  ['is refused', { status: 403, body: '' }, undefined],
  ['fails', { status: 503, body: '' }, 'target_not_evaluable'],
]
for (const [what, answer, code] of robots) {
  test(`a robots.txt that ${what} ${code ? 'forbids' : 'permits'} visits`, async () => {
    site.robots = answer

    const { recommendation } = await analyse(await server.project(), { url: `https://${newHost()}/private/page` })

    assert.equal(recommendation?.type === 'no_recommendation' ? recommendation.code : undefined, code)
    assert.equal(site.visits.length, code ? 0 : 2)
  })
}

test('results are shared with every project, by target, host and domain, without pages of other projects', async () => {
  const [one, other] = [await server.project(), await server.project()]
  const host = newHost()
  await analyse(one, { url: `https://www.${host}/secret/page` })
  const found = async (address: string) => {
    const { recommendation } = (await lookUp(other, { url: address })).body
    if (recommendation?.type !== 'recommendation') return recommendation
    return [recommendation.match_scope, recommendation.matched_target]
  }

  assert.deepEqual(await found(`https://www.${host}/secret/page?x`), ['exact', `https://www.${host}/secret/page`])
  assert.deepEqual(await found(`https://www.${host}/`), ['host', `www.${host}`])
  assert.deepEqual(await found(`https://api.${host}/`), ['domain', host])
  assert.equal(await found(`https://${newHost()}/`), null)
  assert.deepEqual((await other.call('GET', '/config-registry')).body, [])
})

test('a change of a site is accepted when most of the latest runs agree, and older results stay available', async () => {
  const project = await server.project()
  const target = `https://${newHost()}/`
  const first = await analyse(project, { url: target })
  site.see = shownIf(({ headless }) => !headless)
  server.clock.advance(1)
  const second = await analyse(project, { url: target })
  server.clock.advance(3 * 3600)
  const third = await resolve(project, { url: target })

  assert.equal(summaryOf(first.recommendation), 'headless direct')
  assert.equal(summaryOf(second.recommendation), 'headful direct')
  assert.equal(summaryOf(third.body.recommendation), 'headful direct')
  assert.deepEqual((await get(project, first.analysis?.id ?? '')).body, first, 'an analysis that is over stays')
})

test('an equal request joins a running analysis, and another one does not', async () => {
  const project = await server.project()
  const target = `https://${newHost()}/`

  const answers = await Promise.all([1, 2, 3].map(() => resolve(project, { url: target })))
  const other = await resolve(project, { url: target, intent: 'read' })

  assert.equal(new Set(answers.map(idOf)).size, 1)
  assert.notEqual(idOf(other), answers.map(idOf)[0])
  assert.equal(other.body.analysis?.intent, 'read')
  assert.match(other.body.guidance ?? '', /no model/)
})

test('simultaneous analyses of a project are limited', async () => {
  const project = await server.project()

  const answers = await Promise.all([1, 2, 3, 4, 5].map(() => resolve(project, { url: `https://${newHost()}/` })))

  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 200, 429, 429, 429])
  const busy = answers.find(({ status }) => status === 429)
  assert.deepEqual([busy?.headers.get('retry-after'), busy?.headers.get('x-should-retry')], ['30', 'true'])
})

test('analyses of a site per hour are limited over all projects', async () => {
  const host = newHost()
  const projects = await Promise.all([1, 2, 3, 4, 5].map(() => server.project()))

  const answers = await Promise.all(
    projects.map((project, index) => resolve(project, { url: `https://www.${host}/${index}` })),
  )
  server.clock.advance(3601)
  const later = await resolve(projects[0] as TestProject, { url: `https://www.${host}/later` })

  assert.ok(answers.every(({ status }) => status === 200))
  const without = answers.filter(({ body }) => body.analysis === null)
  assert.equal(without.length, 2)
  assert.match(without[0]?.body.guidance ?? '', /3 times within an hour/)
  assert.notEqual(later.body.analysis, null)
})

test('a waiting analysis is canceled immediately and permanently', async () => {
  const project = await server.project()
  const started = await resolve(project, { url: `https://${newHost()}/` })
  const cancel = () => project.call<ConfigRegistryResponse>('POST', `/config-registry/analyses/${idOf(started)}/cancel`)

  const canceled = await cancel()
  server.clock.advance(5)
  const again = await cancel()
  await run(idOf(started))

  assert.equal(canceled.body.analysis?.status, 'canceled')
  assert.equal(canceled.body.analysis?.failure?.code, 'canceled')
  assert.deepEqual(again.body, canceled.body)
  assert.deepEqual((await get(project, idOf(started))).body, canceled.body)
  assert.deepEqual(site.visits, [])
})

test('a running analysis is canceled, and its session ends', async () => {
  const project = await server.project()
  const started = await resolve(project, { url: `https://${newHost()}/` })
  site.see = () => 'hang'
  const visited = site.untilVisited()
  const running = run(idOf(started))
  await visited

  const answer = await project.call<ConfigRegistryResponse>('POST', `/config-registry/analyses/${idOf(started)}/cancel`)
  await running

  assert.equal(answer.body.analysis?.status, 'running')
  assert.equal((await get(project, idOf(started))).body.analysis?.status, 'canceled')
  assert.deepEqual(await sessionsOf(project), [])
})

test('an analysis ends at its time limit, even if no server runs it', async () => {
  const project = await server.project()
  const waiting = await resolve(project, { url: `https://${newHost()}/` })
  const worked = await resolve(project, { url: `https://${newHost()}/` })
  site.see = () => 'hang'
  const visited = site.untilVisited()
  const running = run(idOf(worked))
  await visited

  server.clock.advance(45 * 60)
  await running

  for (const started of [waiting, worked]) {
    const { analysis } = (await get(project, idOf(started))).body
    assert.deepEqual(
      [analysis?.status, analysis?.finished_at, analysis?.failure],
      ['expired', started.body.analysis?.expires_at, null],
    )
  }
  assert.deepEqual(await sessionsOf(project), [])
})

test('an analysis continues on another server, and sessions of the killed one end', async () => {
  const project = await server.project()
  const started = await resolve(project, { url: `https://${newHost()}/` })
  site.see = ({ headless }) => (headless ? {} : 'hang')
  const stopping = new AbortController()
  const [first, second] = [site.untilVisited(), Promise.withResolvers<void>()]
  const running = run(idOf(started), stopping.signal)
  await first
  site.untilVisited().then(second.resolve, second.reject)
  await second.promise
  stopping.abort(new Error('the server stops'))
  await assert.rejects(running, /the server stops/)
  assert.deepEqual(await sessionsOf(project), [], 'a server that stops ends its session')
  const tags = { 'berth.analysis': idOf(started) }
  await project.session({ headless: true, tags })
  await project.call('POST', '/proxies', { type: 'isp', name: `analysis ${idOf(started)}` })

  site.see = () => ({})
  await run(idOf(started))

  assert.deepEqual(await sessionsOf(project), [])
  assert.deepEqual((await project.call('GET', '/proxies')).body, [])
  assert.equal((await get(project, idOf(started))).body.analysis?.status, 'completed')
  assert.equal(site.visits.filter(({ headless }) => headless).length, 1, 'what was seen is not looked at again')
})

test('an analysis that is interrupted repeatedly fails with that reason', async () => {
  const project = await server.project()
  const started = await resolve(project, { url: `https://${newHost()}/` })
  const stopping = AbortSignal.abort(new Error('the server stops'))
  for (let attempt = 0; attempt < 4; attempt += 1) await assert.rejects(run(idOf(started), stopping))

  await run(idOf(started))

  const { analysis } = (await get(project, idOf(started))).body
  assert.deepEqual([analysis?.status, analysis?.failure?.code], ['failed', 'analysis_interrupted'])
})

test('an analysis fails, and can be repeated, when the host cannot start a browser', async () => {
  const project = await server.project()
  const body = { url: `https://${newHost()}/` }
  for (let start = 0; start < 2; start += 1) server.host.failNextStart('no room')

  const failed = await analyse(project, body)
  const again = await analyse(project, body)

  assert.deepEqual([failed.analysis?.status, failed.analysis?.failure?.code], ['failed', 'session_start_failed'])
  assert.equal(failed.recommendation, null)
  assert.equal(again.analysis?.status, 'completed')
})

test('sessions of analyses count towards the limits of the project: without a free slot, the analysis waits and then fails', async () => {
  const project = await server.project()
  await server.database
    .updateTable('projects')
    .set({ max_concurrent_sessions: 1 })
    .where('id', '=', project.id)
    .execute()
  const own = await project.session()

  const failed = await analyse(project, { url: `https://${newHost()}/` })
  await project.call('DELETE', `/browsers/${own.session_id}`)
  const again = await analyse(project, { url: `https://${newHost()}/` })

  assert.deepEqual([failed.analysis?.status, failed.analysis?.failure?.code], ['failed', 'session_limit_reached'])
  assert.equal(again.analysis?.status, 'completed')
})

test('analyses and targets of a project are listed, filtered and sorted', async () => {
  const project = await server.project()
  const hosts = [newHost(), newHost(), newHost()] as const
  const urls = hosts.map((host, index) => `https://www.${host}/Page-${index}`)
  site.see = shownIf(({ headless }) => !headless)
  await analyse(project, { url: urls[0] })
  site.see = () => ({})
  server.clock.advance(1)
  await analyse(project, { url: urls[1] })
  server.clock.advance(1)
  await resolve(project, { url: urls[2] })
  const targets = async (query: string) => {
    const { body } = await project.call<RecommendationSummary[]>('GET', `/config-registry?${query}`)
    return body.map(({ target }) => urls.indexOf(target))
  }
  const analyses = async (query: string) => {
    const { body } = await project.call<AnalysisSummary[]>('GET', `/config-registry/analyses?${query}`)
    return body.map(({ target }) => urls.indexOf(target.normalized))
  }

  const { body: all } = await project.call<RecommendationSummary[]>('GET', '/config-registry')
  assert.deepEqual(
    all.map(({ analysis_status, recommended_config_label, success_rate }) => [
      analysis_status,
      recommended_config_label,
      success_rate,
    ]),
    [
      ['running', null, null],
      ['completed', 'headless', 1],
      ['completed', 'headful', 1],
    ],
  )
  const table: readonly (readonly [query: string, found: readonly number[]])[] = [
    ['', [2, 1, 0]],
    ['sort_order=asc', [0, 1, 2]],
    ['sort_by=target&sort_order=asc', [0, 1, 2]],
    ['sort_by=target', [2, 1, 0]],
    ['sort_by=analysis_status&sort_order=asc', [0, 1, 2]],
    ['sort_by=recommended_config&sort_order=asc', [0, 1, 2]],
    ['sort_by=recommended_config&sort_order=desc', [1, 0, 2]],
    ['sort_by=success_rate&sort_order=asc', [0, 1, 2]],
    ['sort_by=last_requested_at', [2, 1, 0]],
    ['sort_by=&sort_order=', [2, 1, 0]],
    ['search=PAGE-1', [1]],
    [`search=${encodeURIComponent(`https://other.${hosts[2]}/anything?x`)}`, [2]],
    ['search=nowhere', []],
  ]
  for (const [query, found] of table) assert.deepEqual(await targets(query), found, query)
  assert.deepEqual(await analyses(''), [2, 1, 0])
  assert.deepEqual(await analyses('search=PAGE-1'), [1])
  const page = await project.call('GET', '/config-registry/analyses?limit=2')
  assert.deepEqual(
    ['x-limit', 'x-offset', 'x-has-more', 'x-next-offset'].map((name) => page.headers.get(name)),
    ['2', '0', 'true', '2'],
  )
  for (const query of ['sort_by=colour', 'sort_order=up', 'limit=0']) {
    assert.equal((await project.call('GET', `/config-registry?${query}`)).status, 400, query)
  }
  await resolve(project, { url: urls[0] })
  assert.deepEqual((await targets('sort_by=last_requested_at'))[0], 2, 'of two at the same time, the later target')
})

test('a running analysis prevents the delete of its project, and finished ones do not', async () => {
  const project = await server.project()
  const { body: second } = await project.call<{ id: string }>('POST', '/org/projects', { name: 'second' })
  const inSecond = { headers: { 'x-kernel-project-id': second.id } }
  const started = await project.call<ConfigRegistryResponse>(
    'POST',
    '/config-registry/resolve',
    { url: `https://${newHost()}/` },
    inSecond,
  )

  const held = await project.call('DELETE', `/org/projects/${second.id}`)
  await project.call('POST', `/config-registry/analyses/${idOf(started)}/cancel`, undefined, inSecond)
  const deleted = await project.call('DELETE', `/org/projects/${second.id}`)

  assert.deepEqual([held.status, deleted.status], [409, 204])
})
