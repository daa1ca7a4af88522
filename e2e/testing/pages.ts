import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { clusterHost } from './cluster-environment.ts'

/**
 * A script for a page of `startPages` that never ends. It waits for answers that never come, because a loop alone would
 * take a processor for as long as the page is open.
 */
export const endlessScript =
  "for (;;) { const ask = new XMLHttpRequest(); ask.open('GET', '/unanswered', false); ask.send() }"

type PageHandler = (request: IncomingMessage, response: ServerResponse) => void

/** The name of the host's loopback in sessions, if the operator permits it. Pods have another loopback. */
export const hostName = clusterHost ?? 'host.berth.internal'

/** Where servers of tests listen: on this host's loopback, or where pods reach them. */
export const testHost = clusterHost ?? '127.0.0.1'

/** Test pages, on loopback or where pods reach them. */
export interface Pages {
  readonly port: number
  /** The URL for sessions. */
  readonly url: string
  /** The URL for programs of this host, such as the server. */
  readonly hostUrl: string
  /** A value for `BERTH_EGRESS_ALLOW` that lets sessions reach these pages and no other port. */
  readonly allowed: string
  /** A session policy that makes these pages a secure origin. */
  readonly trusted: { readonly OverrideSecurityRestrictionsOnInsecureOrigin: readonly string[] }
  /** Path and query of every request so far. */
  readonly requests: readonly string[]
  serve(path: string, content: string | PageHandler): void
  [Symbol.asyncDispose](): Promise<void>
}

export async function startPages(): Promise<Pages> {
  const handlers = new Map<string, string | PageHandler>([
    ['/', '<!doctype html><title>Home</title><h1>Home</h1>'],
    ['/unanswered', () => {}],
  ])
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(request.url ?? '')
    const content = handlers.get((request.url ?? '').split('?')[0] ?? '')
    if (typeof content === 'function') content(request, response)
    else {
      response.writeHead(content === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' })
      response.end(content ?? 'not here')
    }
  }).listen(0, testHost)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const authority = `${hostName}:${port}`
  return {
    port,
    url: `http://${authority}`,
    hostUrl: `http://${testHost}:${port}`,
    allowed: authority,
    trusted: { OverrideSecurityRestrictionsOnInsecureOrigin: [`http://${authority}`] },
    requests,
    serve: (path, content) => void handlers.set(path, content),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
