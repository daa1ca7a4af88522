import assert from 'node:assert/strict'
import { after, suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type Kernel from '@onkernel/sdk'
import { APIError } from '@onkernel/sdk'
import { chromium } from 'playwright-core'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { endlessScript, hostName, startPages } from './testing/pages.ts'
import { startSearxng } from './testing/servers/searxng.ts'

interface Content {
  readonly status: string
  readonly text?: string
  readonly method?: string
  readonly cache_status?: string
  readonly http_status?: number
  readonly final_url?: string
  readonly completeness?: string
  readonly error?: { readonly code: string }
}

interface Search {
  readonly id: string
  readonly provider: string
  readonly results: readonly { readonly id: string; readonly url: string; readonly content?: Content }[]
  readonly usage: { readonly content_fetches: number }
  readonly warnings: readonly { readonly code: string }[]
}

const sentence = 'The article tells what happened, in sentences that are as long as those of articles are. '
const article = (title: string, text = sentence.repeat(6)) =>
  `<!doctype html><title>${title}</title><nav><a href="/">Home</a></nav><main><h1>${title}</h1><p>${text}</p></main><footer>Imprint</footer>`
const app = (script: string) =>
  `<!doctype html><title>App</title><div id="root">Loading</div><script>const text = '${sentence.repeat(6)}';${script}</script>`

const pages = await startPages()
const searxng = await startSearxng()
const berth = await Berth.start({
  environment: { BERTH_EGRESS_ALLOW: pages.allowed, BERTH_SEARCH_SEARXNG_URL: searxng.url },
})
after(async () => {
  await berth[Symbol.asyncDispose]()
  await searxng[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})
const client = await berth.client()

pages.serve('/article', article('A plain article'))
pages.serve('/moved', (_request, response) => response.writeHead(302, { location: '/article' }).end())
pages.serve('/windows', (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/html' })
  const [head, tail] = article('Cyrillic', '@').replace('<title>', '<meta charset="windows-1251"><title>').split('@')
  // "Привет, мир." repeated.
  const text = Buffer.from([0xcf, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2, 0x2c, 0x20, 0xec, 0xe8, 0xf0, 0x2e, 0x20])
  response.end(
    Buffer.concat([Buffer.from(head ?? ''), ...Array.from({ length: 30 }, () => text), Buffer.from(tail ?? '')]),
  )
})
pages.serve(
  '/app',
  app(`fetch('/data').then(() => requestAnimationFrame(() => setTimeout(() => {
  document.title = 'Done'; root.innerHTML = '<main><h1>Made by a script</h1><p>' + text + '</p></main>' }, 300)))`),
)
pages.serve(
  '/lazy',
  app(`new IntersectionObserver(([entry]) => { if (entry.isIntersecting) root.innerHTML =
    '<main><h1>Scrolled to</h1><p>' + text + '</p></main>' }).observe(root)`),
)
pages.serve('/data', '{}')
pages.serve(
  '/shadow',
  app(`root.attachShadow({ mode: 'open' }).innerHTML = '<main><h1>In a shadow</h1><p>' + text + '</p></main>'`),
)
pages.serve('/dialog', app(`alert(1); root.innerHTML = '<main><h1>After a dialog</h1><p>' + text + '</p></main>'`))
pages.serve('/endless', app(endlessScript))
pages.serve('/silent', () => {})
pages.serve('/image', (_request, response) => response.writeHead(200, { 'content-type': 'image/png' }).end('png'))
pages.serve('/deep', `<!doctype html><title>Deep</title>${'<div>'.repeat(150_000)}text`)
pages.serve('/who', (request, response) => {
  response.setHeader('set-cookie', 'visit=1; Path=/')
  response.writeHead(200, { 'content-type': 'text/html' })
  response.end(
    article(
      'Who',
      `cookie=${request.headers.cookie ?? 'none'} language=${request.headers['accept-language']} ${sentence.repeat(5)}`,
    ),
  )
})
pages.serve('/pdf', (_request, response) =>
  response.writeHead(200, { 'content-type': 'application/pdf' }).end(pdf('Text of a document')),
)

/** A document of one page with one line. */
function pdf(line: string): string {
  const stream = `BT /F1 24 Tf 72 700 Td (${line}) Tj ET`
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ]
  let text = '%PDF-1.4\n'
  const offsets = objects.map((object, index) => {
    const offset = text.length
    text += `${index + 1} 0 obj\n${object}\nendobj\n`
    return offset
  })
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('')
  return `${text}xref\n0 6\n0000000000 65535 f \n${table}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n${text.length}\n%%EOF`
}

const search = (paths: readonly string[], body: object = {}) => {
  searxng.hits = paths.map((path) => ({ url: `${pages.url}${path}`, title: path, content: 'A snippet' }))
  return client.post<Search>('/search', { body: { query: 'what happened', ...body } })
}
const contentOf = async (path: string, content: object = {}) =>
  (await search([path], { content: { source: 'browser', max_age_hours: 0, ...content } })).results[0]
    ?.content as Content
const openSessions = async (kernel: Kernel) => Array.fromAsync(kernel.browsers.list())

suite('search with a real browser', () => {
  test('every operation works with the official client', async () => {
    const made = await search(['/article'], { max_results: 3, language: 'de', content: true })
    assert.deepEqual([made.provider, made.results[0]?.content?.status], ['searxng', 'ok'])
    assert.equal(searxng.queries.at(-1)?.get('language'), 'de')
    assert.deepEqual(await client.get(`/search/${made.id}`), made)
    const contents = await client.post<{ contents: Content[] }>(`/search/${made.id}/contents`, {
      body: { limit: 1 },
    })
    assert.deepEqual([contents.contents[0]?.status, contents.contents[0]?.cache_status], ['ok', 'hit'])
    const providers = await client.get<{ slug: string }[]>('/search/providers')
    assert.deepEqual(
      providers.map(({ slug }) => slug),
      ['searxng'],
    )
    await assert.rejects(
      Promise.resolve(client.get('/search/nothing')),
      (error) => error instanceof APIError && error.status === 404,
    )
    assert.deepEqual(await openSessions(client), [])
  })

  test('pages of every kind are returned as text', async () => {
    const paths = [
      '/article',
      '/moved',
      '/windows',
      '/app',
      '/lazy',
      '/shadow',
      '/dialog',
      '/pdf',
      '/image',
      '/missing',
    ]
    const { results, usage } = await search(paths, {
      content: { source: 'browser', timeout_ms: 40_000, max_age_hours: 0 },
    })

    const told = Object.fromEntries(
      results.map(({ url, content }) => [new URL(url).pathname, [content?.status, content?.method]]),
    )
    const textOf = (path: string) => results.find(({ url }) => url.endsWith(path))?.content?.text ?? ''
    assert.deepEqual(told, {
      '/article': ['ok', 'browser_curl'],
      '/moved': ['ok', 'browser_curl'],
      '/windows': ['ok', 'browser_curl'],
      '/app': ['ok', 'browser_render'],
      '/lazy': ['ok', 'browser_render'],
      '/shadow': ['ok', 'browser_render'],
      '/dialog': ['ok', 'browser_render'],
      '/pdf': ['ok', 'browser_curl'],
      '/image': ['unsupported_type', 'browser_curl'],
      '/missing': ['unavailable', 'browser_curl'],
    })
    assert.match(textOf('/article'), /^# A plain article\n\nThe article tells/)
    assert.doesNotMatch(textOf('/article'), /Imprint|Home/)
    assert.match(textOf('/windows'), /Привет, мир\./)
    assert.match(textOf('/app'), /^# Made by a script/)
    assert.match(textOf('/lazy'), /Scrolled to/)
    assert.match(textOf('/shadow'), /In a shadow/)
    assert.match(textOf('/dialog'), /After a dialog/)
    assert.equal(textOf('/pdf'), 'Text of a document')
    assert.equal(results[1]?.content?.final_url, `${pages.url}/article`)
    assert.equal(usage.content_fetches, paths.length)
    assert.deepEqual(await openSessions(client), [])
  })

  test('an endless page is reported as late, and an unreachable one as an error', async () => {
    const endless = await contentOf('/endless', { timeout_ms: 6_000, browser: { mode: 'render' } })
    const silent = await contentOf('/silent', { timeout_ms: 2_000, browser: { mode: 'curl' } })
    const beyond = [`http://${hostName}:59999/`, 'http://169.254.169.254/latest/meta-data/']
    searxng.hits = beyond.map((url) => ({ url, title: 'beyond', content: '' }))
    const { results } = await client.post<Search>('/search', {
      body: { query: 'q', content: { source: 'browser' } },
    })

    assert.equal(endless.status, 'timeout', JSON.stringify(endless))
    assert.equal(silent.status, 'timeout')
    for (const { content } of results) {
      assert.deepEqual([content?.status, content?.error?.code], ['error', 'err_address_unreachable'])
    }
    assert.deepEqual(await openSessions(client), [])
  })

  test('an unreadable page delays nothing else', async () => {
    const reading = contentOf('/deep', { timeout_ms: 20_000, browser: { mode: 'curl' } })
    let isRead = false
    reading.then(
      () => (isRead = true),
      () => (isRead = true),
    )
    let slowest = 0
    while (!isRead) {
      const begin = performance.now()
      assert.equal((await fetch(`${berth.url}/health`)).status, 200)
      slowest = Math.max(slowest, performance.now() - begin)
      await delay(20)
    }
    const { status } = await reading
    assert.ok(['extraction_failed', 'ok'].includes(status), status)
    assert.ok(slowest < 10_000, `the server answered after ${slowest} ms`)
  })

  test('a given browser fetches with its own cookies, shows no tab, and continues', async () => {
    const session = await client.browsers.create({ headless: true })
    const browser = await chromium.connectOverCDP(session.cdp_ws_url)
    const [context] = browser.contexts()
    await context?.addCookies([{ name: 'login', value: 'secret', url: pages.url }])
    const tabs = context?.pages().length
    const opened: string[] = []
    context?.on('page', (page) => opened.push(page.url()))

    for (const mode of ['curl', 'render']) {
      const content = await contentOf('/who', { browser: { browser_id: session.session_id, mode } })
      assert.match(content.text ?? '', /cookie=.*login=secret/, `${mode}: ${JSON.stringify(content)}`)
      assert.equal(content.cache_status, 'bypass')
    }
    const foreign = await contentOf('/who')
    assert.match(foreign.text ?? '', /cookie=none/)

    assert.deepEqual([context?.pages().length, opened], [tabs, []])
    assert.deepEqual(
      (await openSessions(client)).map(({ session_id }) => session_id),
      [session.session_id],
    )
    await browser.close()
    await client.browsers.deleteByID(session.session_id)
  })

  test('the temporary browser ends when the caller disconnects', async () => {
    const leave = new AbortController()
    const asked = pages.requests.length
    searxng.hits = [{ url: `${pages.url}/silent`, title: 'x', content: '' }]
    const body = JSON.stringify({ query: 'q', content: { source: 'browser' } })
    const headers = { 'content-type': 'application/json' }
    const call = berth.request('/search', { method: 'POST', body, headers, signal: leave.signal }).catch(() => 'left')
    await until('the request', () => pages.requests.length > asked, { limitSeconds: 30 })

    leave.abort()

    assert.equal(await call, 'left')
    await until('the end of the browser', async () => (await openSessions(client)).length === 0, { limitSeconds: 30 })
  })
})
