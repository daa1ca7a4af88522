import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { ProviderSlug } from '@berth/contract/search/provider-options.ts'
import { knownProviders, type SearchConfig } from '../../features/search/providers/known-providers.ts'

/** A request to a provider. */
export interface ProviderCall {
  readonly slug: ProviderSlug
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: IncomingMessage['headers']
  // biome-ignore lint/suspicious/noExplicitAny: each provider has its own bodies, which tests inspect.
  readonly body: any
}

export interface FakeHit {
  readonly url: string
  readonly title?: string
  readonly text?: string
}

/** How a provider behaves: as documented, or with a failure. */
export type Behaviour =
  | { readonly kind: 'hits'; readonly hits: readonly FakeHit[] }
  | { readonly kind: 'status'; readonly status: number }
  | { readonly kind: 'silent' | 'cut' | 'wrong' | 'no-json' | 'huge' | 'redirect' | 'slow-body' }

const hugeBytes = 9 * 1024 * 1024

/** A server on this host with the APIs of all providers, each below its own path and with its own key. */
export class FakeProviders {
  readonly calls: ProviderCall[] = []
  readonly #server: Server
  readonly #behaviours = new Map<ProviderSlug, Behaviour>()

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy())
    })
  }

  static async open(): Promise<FakeProviders> {
    const fake = new FakeProviders()
    fake.#server.listen(0, '127.0.0.1')
    await once(fake.#server, 'listening')
    return fake
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  config(slugs: readonly ProviderSlug[], attemptLimitMilliseconds = 5_000): SearchConfig {
    const providers = slugs.map((slug) => {
      const provider = knownProviders.find((known) => known.slug === slug)
      if (!provider) throw new Error(`there is no provider ${slug}`)
      return { provider, url: `${this.url}/${slug}`, key: `key-of-${slug}` }
    })
    return { providers, attemptLimitMilliseconds }
  }

  behave(slug: ProviderSlug, behaviour: Behaviour): void {
    this.#behaviours.set(slug, behaviour)
  }

  hits(slug: ProviderSlug, ...hits: readonly FakeHit[]): void {
    this.behave(slug, { kind: 'hits', hits })
  }

  /** Returns the last request to a provider, and clears all. */
  take(slug: ProviderSlug): ProviderCall {
    const call = this.calls.findLast((one) => one.slug === slug)
    if (!call) throw new Error(`${slug} was not asked`)
    this.calls.length = 0
    return call
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake')
    const [, slug = '', ...rest] = url.pathname.split('/')
    const sent = await text(request)
    const call: ProviderCall = {
      slug: slug as ProviderSlug,
      method: request.method ?? '',
      path: `/${rest.join('/')}`,
      query: Object.fromEntries(url.searchParams),
      headers: request.headers,
      body: sent === '' ? undefined : JSON.parse(sent),
    }
    this.calls.push(call)
    if (!hasKey(call)) return void response.writeHead(401).end()
    const behaviour = this.#behaviours.get(call.slug) ?? { kind: 'hits', hits: [] }
    this.#behave(behaviour, call, response)
  }

  #behave(behaviour: Behaviour, call: ProviderCall, response: ServerResponse): void {
    const head = { 'content-type': 'application/json' }
    switch (behaviour.kind) {
      case 'hits': {
        const answer = answers[call.slug]?.(call, behaviour.hits)
        if (answer === undefined) return void response.writeHead(404).end()
        return void response.writeHead(200, head).end(JSON.stringify(answer))
      }
      case 'status':
        return void response.writeHead(behaviour.status, head).end('{"error":"no"}')
      case 'silent':
        return
      case 'cut':
        return void response.destroy()
      case 'wrong':
        return void response.writeHead(200, head).end('{"results":{"no":"list"},"web":7,"organic_results":"x"}')
      case 'no-json':
        return void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')
      case 'huge':
        return void response.writeHead(200, head).end(Buffer.alloc(hugeBytes, 0x20))
      case 'redirect':
        return void response.writeHead(302, { location: `${this.url}/elsewhere` }).end()
      case 'slow-body':
        response.writeHead(200, head).write('{"results": [')
    }
  }
}

function hasKey({ slug, headers, query }: ProviderCall): boolean {
  const key = `key-of-${slug}`
  const shown = [headers['x-subscription-token'], headers['x-api-key'], query.api_key, headers.authorization]
  return shown.some((one) => one === key || one === `Bearer ${key}`)
}

type Answer = (call: ProviderCall, hits: readonly FakeHit[]) => unknown

/** Responses as in the public documentation of each provider. */
const answers: Partial<Record<ProviderSlug, Answer>> = {
  brave: ({ path }, hits) =>
    path === '/res/v1/web/search'
      ? {
          type: 'search',
          web: {
            type: 'search',
            results: hits.map(({ url, title = 'A title', text }) => ({
              ...{ url, title, description: text ?? 'A description', page_age: '2026-01-02T03:04:05' },
              ...{ profile: { name: 'Example' }, extra_snippets: ['one more'] },
            })),
          },
        }
      : undefined,
  exa: ({ path, body }, hits) => {
    if (path === '/contents') return { results: contentsOf(body.urls, hits, 'text') }
    if (path !== '/search') return undefined
    return {
      requestId: 'x',
      costDollars: { total: 0.005 },
      results: hits.map(({ url, title = 'A title', text }) => ({
        ...{ id: url, url, title, publishedDate: '2026-01-02T00:00:00.000Z', highlights: ['first', 'second'] },
        ...(body.contents?.text && { text }),
      })),
    }
  },
  tavily: ({ path, body }, hits) => {
    if (path === '/extract') return { results: contentsOf(body.urls, hits, 'raw_content'), failed_results: [] }
    if (path !== '/search') return undefined
    return {
      query: body.query,
      answer: body.include_answer ? 'The answer.' : null,
      results: hits.map(({ url, title = 'A title', text }) => ({
        ...{ url, title, content: 'A snippet', score: 0.9 },
        raw_content: body.include_raw_content ? text : null,
      })),
    }
  },
  serpapi: ({ path }, hits) => {
    if (path !== '/search.json') return undefined
    if (hits.length === 0) return { error: "Google hasn't returned any results for this query." }
    return {
      search_metadata: { status: 'Success' },
      organic_results: hits.map(({ url: link, title = 'A title' }, index) => ({
        ...{ position: index + 1, link, title, snippet: 'A snippet', source: 'Example', date: 'Jan 2, 2026' },
      })),
    }
  },
  perplexity: ({ path }, hits) =>
    path === '/search'
      ? {
          id: 'x',
          results: hits.map(({ url, title = 'A title' }) => ({ url, title, snippet: 'A snippet', date: '2026-01-02' })),
        }
      : undefined,
  parallel: ({ path }, hits) =>
    path === '/v1/search'
      ? {
          search_id: 'x',
          results: hits.map(({ url, title = 'A title', text }) => ({
            ...{ url, title, publish_date: '2026-01-02', excerpts: [text ?? 'An excerpt', 'Another one'] },
          })),
        }
      : undefined,
  valyu: ({ path }, hits) =>
    path === '/v1/deepsearch'
      ? {
          success: true,
          total_deduction_dollars: 0.01,
          results: hits.map(({ url, title = 'A title', text = 'The content' }) => ({
            ...{ url, title, description: 'A snippet', content: text, source: 'web', publication_date: '2026-01-02' },
          })),
        }
      : undefined,
  you: ({ path, body }, hits) =>
    path === '/v1/search'
      ? {
          metadata: {},
          results: {
            web: hits.map(({ url, title = 'A title', text }) => ({
              ...{ url, title, description: 'A description', snippets: ['first', 'second'], page_age: '2026-01-02' },
              ...(body.extraction?.extraction_mode === 'full_page' && { contents: { markdown: text } }),
            })),
            news: [],
          },
        }
      : undefined,
  context: ({ path, body }, hits) =>
    path === '/web/search'
      ? {
          query: body.query,
          results: hits.map(({ url, title = 'A title', text }) => ({
            ...{ url, title, description: 'A description', relevance: 'high' },
            ...(body.markdownOptions?.enabled && { markdown: { markdown: text ?? null, code: 'SUCCESS' } }),
          })),
        }
      : undefined,
  octen: ({ path, body }, hits) =>
    path === '/search'
      ? {
          ...{ code: 0, msg: 'success', request_id: 'x', meta: { usage: { num_search_queries: 1 }, warning: null } },
          data: {
            query: body.query,
            results: hits.map(({ url, title = 'A title', text }) => ({
              ...{ url, title, highlight: 'A highlight', authors: 'Example', time_published: '2026-01-02T00:00:00Z' },
              ...(body.full_content?.enable && { full_content: text }),
            })),
          },
        }
      : undefined,
  searxng: ({ path, query }, hits) =>
    path === '/search' && query.format === 'json'
      ? {
          query: query.q,
          answers: [],
          results: hits.map(({ url, title = 'A title', text = 'A snippet' }) => ({
            ...{ url, title, content: text, engine: 'bing', publishedDate: '2026-01-02T00:00:00' },
          })),
        }
      : undefined,
}

function contentsOf(urls: readonly string[], hits: readonly FakeHit[], field: string) {
  return hits.filter(({ url, text }) => urls.includes(url) && text).map(({ url, text }) => ({ url, [field]: text }))
}
