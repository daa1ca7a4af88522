import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

type PageHandler = (request: IncomingMessage, response: ServerResponse) => void

/** Pages of our own on loopback; sessions reach them because the started berth allows this port. */
export interface Pages {
  readonly port: number
  readonly url: string
  /** Path and query of every request so far. */
  readonly requests: readonly string[]
  serve(path: string, content: string | PageHandler): void
  [Symbol.asyncDispose](): Promise<void>
}

export async function startPages(): Promise<Pages> {
  const handlers = new Map<string, string | PageHandler>([['/', '<!doctype html><title>Home</title><h1>Home</h1>']])
  const requests: string[] = []
  const server: Server = createServer((request, response) => {
    requests.push(request.url ?? '')
    const content = handlers.get((request.url ?? '').split('?')[0] ?? '')
    if (typeof content === 'function') return content(request, response)
    response.writeHead(content === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' })
    response.end(content ?? 'not here')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    requests,
    serve: (path, content) => void handlers.set(path, content),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
