import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { isDeep } from './fault/testing/deep.ts'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { createCheckedFetch } from './testing/checked-fetch.ts'
import { startPages } from './testing/pages.ts'
import { startForwardProxy } from './testing/servers/forward-proxy.ts'

/*
 * Analyses of our own sites with real browsers. The meaning of each kind of evidence is tested beside the code; these
 * tests check that browsers collect it.
 */

const pages = await startPages()
const proxy = await startForwardProxy()
const dataFolder = await mkdtemp(join(tmpdir(), 'berth-e2e-'))
const options = {
  dataFolder,
  environment: {
    BERTH_EGRESS_ALLOW: `${pages.allowed},127.0.0.1:${proxy.port}`,
    BERTH_PROXY_POOLS: JSON.stringify({ isp: [{ url: `http://127.0.0.1:${proxy.port}`, country: 'DE' }] }),
    // All sites of this test have the same host.
    BERTH_ANALYSES_PER_SITE: '1000',
    BERTH_ANALYSES_PER_PROJECT: '100',
  },
}
let berth = await Berth.start(options)
after(async () => {
  await berth[Symbol.asyncDispose]()
  for (const opened of [pages, proxy]) await opened[Symbol.asyncDispose]()
  await rm(dataFolder, { recursive: true, force: true })
})

interface Recommendation {
  readonly type: string
  readonly code?: string
  readonly message?: string
  readonly browser?: { readonly headless: boolean; readonly stealth: boolean }
  readonly proxy?: { readonly mode: string; readonly create?: object }
  readonly match_scope?: string
}

interface Answer {
  readonly analysis: { readonly id: string; readonly status: string; readonly failure: unknown } | null
  readonly recommendation: Recommendation | null
  readonly guidance: string | null
}

/** Validates every response against the OpenAPI document. */
async function call<Body = Answer>(method: string, path: string, body?: unknown): Promise<Body> {
  const checked = await createCheckedFetch(berth.url)
  const response = await checked(`${berth.url}/config-registry${path}`, {
    method,
    headers: { authorization: `Bearer ${berth.apiKey}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const answer = (await response.json()) as Body
  assert.equal(response.status, 200, JSON.stringify(answer))
  return answer
}

const start = async (path: string, more: object = {}) => {
  const { analysis } = await call('POST', '/resolve', { url: `${pages.url}${path}`, ...more })
  return analysis?.id ?? assert.fail(`${path}: no analysis`)
}
const finished = (id: string) =>
  until(
    `the end of ${id}`,
    async () => {
      const answer = await call('GET', `/analyses/${id}`)
      return answer.analysis?.status === 'running' ? undefined : answer
    },
    { limitSeconds: 200, everyMilliseconds: 300 },
  )
const sessions = async () => (await (await berth.request('/browsers')).json()) as unknown[]

const article = '<p>The harbour opened in the spring, and ships came from every coast of the old sea.'.repeat(20)
const html = (body: string, title = 'Harbour') =>
  `<!doctype html><meta charset=utf-8><link rel=icon href="data:,"><title>${title}</title><body>${body}`
const respond = (response: ServerResponse, status: number, body: string) =>
  response.writeHead(status, { 'content-type': 'text/html' }).end(body)
const refusal = html('<h1>Access denied</h1>', 'Access denied')

pages.serve('/plain', html(article))
pages.serve(
  '/headless',
  html(`<div></div><script>
document.querySelector('div').innerHTML = navigator.userAgent.includes('Headless') || navigator.webdriver
  ? '<h1>Please verify you are human</h1>' : ${JSON.stringify(article)}</script>`),
)
pages.serve('/address', ({ socket }, response) =>
  proxy.opened(socket.remotePort) ? respond(response, 200, html(article)) : respond(response, 403, refusal),
)
pages.serve('/nobody', (_request, response) => respond(response, 403, refusal))
pages.serve('/slow', (_request, response) => setTimeout(() => respond(response, 200, html(article)), 3_000))
const login = '<form>Sign in <input name=user><input type=password><button>Log in</button></form>'
pages.serve(
  '/login',
  html(`<script>setTimeout(() => { document.body.innerHTML = ${JSON.stringify(login)} }, 900)</script>`),
)
pages.serve('/payment', (_request, response) => respond(response, 402, html('<h1>Payment required</h1>')))
let flakes = 0
pages.serve('/flaky', (_request, response) =>
  ++flakes % 2 ? respond(response, 503, html('Try again')) : respond(response, 200, html(article)),
)
pages.serve('/robots.txt', (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/plain' }).end('User-agent: *\nDisallow: /forbidden')
})
pages.serve('/forbidden', html(article))

type Row = readonly [what: string, path: string, more: object, found: string, guidance?: RegExp]

const usualRows: readonly Row[] = [
  ['a site that keeps out what it sees to be headless', '/headless', {}, 'headless+stealth direct'],
  ['a site that keeps addresses out', '/address', {}, 'headless isp DE'],
  ['a login that scripts make', '/login', {}, 'headless direct', /login/],
  ['a page that robots.txt forbids', '/forbidden', {}, 'target_not_evaluable'],
]
/** These take many visits and cover no further kind of evidence. */
const deepRows: readonly Row[] = [
  ['a plain site', '/plain', {}, 'headless direct'],
  [
    'the site that keeps addresses out, without a proxy',
    '/address',
    { allowed_proxy_countries: ['US'] },
    'proxy_restricted',
  ],
  ['a site that keeps everybody out', '/nobody', { allowed_proxy_countries: ['DE'] }, 'no_working_configuration'],
  ['a slow site', '/slow', {}, 'headless direct'],
  ['a payment wall', '/payment', {}, 'headless direct', /payment/],
  ['a flaky site', '/flaky', {}, 'headless direct'],
]
const table = isDeep ? [...usualRows, ...deepRows] : usualRows

function found({ recommendation }: Answer): string {
  if (!recommendation?.browser) return recommendation?.code ?? 'nothing'
  const { headless, stealth } = recommendation.browser
  const create = recommendation.proxy?.create as { type: string; config: { country: string } } | undefined
  const route = create ? `${create.type} ${create.config.country}` : recommendation.proxy?.mode
  return `${headless ? 'headless' : 'headful'}${stealth ? '+stealth' : ''} ${route}`
}

// All at once: the server queues them.
const started = new Map(await Promise.all(table.map(async (row) => [row, await start(row[1], row[2])] as const)))
for (const row of table) {
  const [what, , , expected, guidance] = row
  test(`an analysis finds how to reach ${what}`, { timeout: 240_000 }, async () => {
    const answer = await finished(started.get(row) ?? '')

    assert.equal(answer.analysis?.status, 'completed', JSON.stringify(answer))
    assert.equal(found(answer), expected, JSON.stringify(answer))
    if (guidance) assert.match(answer.guidance ?? '', guidance)
  })
}

test('analyses leave no session and no proxy, and visit nothing that robots.txt forbids', async () => {
  assert.deepEqual(await sessions(), [])
  assert.deepEqual(await (await berth.request('/proxies')).json(), [])
  assert.ok(!pages.requests.includes('/forbidden'))
})

test('analyses reach nothing that sessions cannot reach', { timeout: 120_000 }, async () => {
  const url = `http://host.berth.internal:${pages.port + 1}/`
  const { analysis } = await call('POST', '/resolve', { url })

  const answer = await finished(analysis?.id ?? '')

  assert.equal(found(answer), 'target_not_evaluable', JSON.stringify(answer))
  const literal = await berth.request('/config-registry/resolve', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ url: 'http://169.254.169.254/' }),
  })
  assert.equal(literal.status, 400)
})

test('a lookup returns knowledge of the target and its neighbours without a visit', async () => {
  const visits = pages.requests.length

  const exact = await call('POST', '/lookup', { url: `${pages.url}/headless?again` })
  const near = await call('POST', '/lookup', { url: `${pages.url}/other` })
  const list = await call<{ target: string }[]>('GET', '?search=/headless')
  const analyses = await call<unknown[]>('GET', '/analyses?search=/headless')

  assert.deepEqual([found(exact), exact.recommendation?.match_scope], ['headless+stealth direct', 'exact'])
  assert.equal(near.recommendation?.match_scope, 'host')
  assert.deepEqual([list.map(({ target }) => target), analyses.length], [[`${pages.url}/headless`], 1])
  assert.equal(pages.requests.length, visits)
})

test('an analysis that is canceled ends its browser', { timeout: 120_000 }, async () => {
  const visited = Promise.withResolvers<void>()
  pages.serve('/never', () => visited.resolve())
  const id = await start('/never')
  await visited.promise

  await call('POST', `/analyses/${id}/cancel`)
  const answer = await finished(id)

  assert.equal(answer.analysis?.status, 'canceled')
  assert.deepEqual(await sessions(), [])
})

test('an analysis of a killed server is finished by the next one', { timeout: 240_000 }, async () => {
  const visited = Promise.withResolvers<void>()
  let isOpen = false
  pages.serve('/killed', (_request, response) => {
    visited.resolve()
    if (isOpen) respond(response, 200, html(article))
  })
  const id = await start('/killed')
  await visited.promise

  await berth.signal('SIGKILL')
  isOpen = true
  berth = await Berth.start(options)
  const answer = await finished(id)

  assert.deepEqual([answer.analysis?.status, found(answer)], ['completed', 'headless direct'])
  assert.deepEqual(await sessions(), [])
})
