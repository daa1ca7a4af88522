import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface SearxngHit {
  readonly url: string
  readonly title: string
  readonly content: string
}

/** A server with the API of SearXNG, and results given by the test. */
export interface Searxng {
  readonly url: string
  readonly queries: readonly URLSearchParams[]
  hits: readonly SearxngHit[]
  [Symbol.asyncDispose](): Promise<void>
}

export async function startSearxng(): Promise<Searxng> {
  const queries: URLSearchParams[] = []
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://searxng')
    queries.push(url.searchParams)
    if (url.pathname !== '/search' || url.searchParams.get('format') !== 'json') {
      response.writeHead(403).end()
      return
    }
    const results = searxng.hits.map((hit) => ({ ...hit, engine: 'test', publishedDate: null }))
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ query: url.searchParams.get('q'), answers: [], results }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const searxng: Searxng = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    queries,
    hits: [],
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return searxng
}
