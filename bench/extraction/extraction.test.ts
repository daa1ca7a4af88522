import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Readability } from '@mozilla/readability'
import { parseHTML } from 'linkedom'
import { isDeep } from '../../e2e/fault/testing/deep.ts'
import { Berth } from '../../e2e/testing/berth.ts'
import { startPages } from '../../e2e/testing/pages.ts'
import { startSearxng } from '../../e2e/testing/servers/searxng.ts'
import { type ExtractionPage, extractionPages } from './page-set.ts'
import { f1, mean } from './score.ts'

const leastScore = 0.9
const leastOfShape = 0.85
/** Results of one search. */
const pagesAtOnce = 30

interface Found {
  readonly url: string
  readonly content?: { readonly status: string; readonly text?: string; readonly method?: string }
}

test('the main text of pages is found at least as well as by Readability alone', async (context) => {
  await using pages = await startPages()
  await using searxng = await startSearxng()
  await using berth = await Berth.start({
    environment: { BERTH_EGRESS_ALLOW: pages.allowed, BERTH_SEARCH_SEARXNG_URL: searxng.url },
  })
  const all = extractionPages()
  assert.equal(all.length, 60)
  // Two of the six pages of each shape, unless --deep.
  const set = isDeep ? all : all.filter((_page, index) => index % 3 === 0)
  for (const { name, html } of set) pages.serve(`/${name}`, html)

  const found = new Map<string, Found>()
  for (let start = 0; start < set.length; start += pagesAtOnce) {
    const part = set.slice(start, start + pagesAtOnce)
    searxng.hits = part.map(({ name }) => ({ url: `${pages.url}/${name}`, title: name, content: '' }))
    for (const result of await search(berth)) found.set(new URL(result.url).pathname.slice(1), result)
  }

  const scores = set.map((page) => {
    const { content } = found.get(page.name) as Found
    assert.equal(content?.status, 'ok', `${page.name}: ${JSON.stringify(content)}`)
    if (page.shape === 'script') assert.equal(content.method, 'browser_render')
    return { shape: page.shape, own: f1(content.text ?? '', page.expected), alone: f1(readable(page), page.expected) }
  })
  for (const [shape, own] of Map.groupBy(scores, (score) => score.shape)) {
    const [ours, alone] = [mean(own.map((one) => one.own)), mean(own.map((one) => one.alone))]
    context.diagnostic(`${shape}: ${ours.toFixed(3)}, Readability alone ${alone.toFixed(3)}`)
    assert.ok(ours >= leastOfShape, `${shape}: ${ours}`)
  }
  const [ours, alone] = [mean(scores.map(({ own }) => own)), mean(scores.map((score) => score.alone))]
  context.diagnostic(`all: ${ours.toFixed(3)}, Readability alone ${alone.toFixed(3)}`)
  assert.ok(ours >= leastScore && ours >= alone, `${ours}, Readability alone ${alone}`)
})

async function search(berth: Berth): Promise<readonly Found[]> {
  const content = { source: 'browser', format: 'text', timeout_ms: 120_000 }
  const response = await berth.request('/search', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: 'pages', max_results: pagesAtOnce, timeout_ms: 200_000, content }),
  })
  const body = await response.text()
  assert.equal(response.status, 200, body)
  return JSON.parse(body).results
}

/** Readability's result for the page as sent, without running scripts. */
function readable({ html }: ExtractionPage): string {
  const { document } = parseHTML(html)
  return new Readability(document as never).parse()?.textContent ?? ''
}
