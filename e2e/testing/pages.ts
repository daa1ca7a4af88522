import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { clusterHost } from './cluster-environment.ts'

type PageHandler = (request: IncomingMessage, response: ServerResponse) => void

/** The name of the host's loopback in sessions, if the operator permits it. Pods have another loopback. */
export const hostName = clusterHost ?? 'host.berth.internal'

/** Test pages, on loopback or where pods reach them. */
export interface Pages {
  readonly port: number
  /** The URL for sessions. */
  readonly url: string
  /** A value for `BERTH_EGRESS_ALLOW` that lets sessions reach these pages and no other port. */
  readonly allowed: string
  /** A session policy that makes these pages a secure origin. */
  readonly trusted: { readonly OverrideSecurityRestrictionsOnInsecureOrigin: readonly string[] }
  /** Path and query of every request so far. */
  readonly requests: readonly string[]
  serve(path: string, content: string | PageHandler): void
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * The server on the port of this process that a borrowed berth lets sessions reach; its pages are opened one at a time.
 */
let ownServer: Promise<PageServer> | undefined
let isOwnServerUsed = false

/** Starts pages on the port of this process, or on another one if that is in use. */
export async function startPages(): Promise<Pages> {
  if (isOwnServerUsed) {
    const server = await PageServer.open()
    return pagesOn(server, () => server.close())
  }
  isOwnServerUsed = true
  const server = await openOwnServer()
  return pagesOn(server, async () => {
    server.clear()
    isOwnServerUsed = false
  })
}

/** A value for `BERTH_EGRESS_ALLOW`: the pages of this process, in whichever file they are started. */
export async function allowedOwnPages(): Promise<string> {
  return `${hostName}:${(await openOwnServer()).port}`
}

async function openOwnServer(): Promise<PageServer> {
  ownServer ??= PageServer.open()
  const server = await ownServer
  server.unref()
  return server
}

function pagesOn(server: PageServer, close: () => Promise<void>): Pages {
  const authority = `${hostName}:${server.port}`
  return {
    port: server.port,
    url: `http://${authority}`,
    allowed: authority,
    trusted: { OverrideSecurityRestrictionsOnInsecureOrigin: [`http://${authority}`] },
    requests: server.requests,
    serve: (path, content) => void server.handlers.set(path, content),
    [Symbol.asyncDispose]: close,
  }
}

class PageServer {
  handlers = new Map<string, string | PageHandler>()
  requests: string[] = []
  readonly #server: Server

  private constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response))
    this.clear()
  }

  static async open(): Promise<PageServer> {
    const server = new PageServer()
    server.#server.listen(0, clusterHost ?? '127.0.0.1')
    await once(server.#server, 'listening')
    return server
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    this.requests.push(request.url ?? '')
    const content = this.handlers.get((request.url ?? '').split('?')[0] ?? '')
    if (typeof content === 'function') content(request, response)
    else {
      response.writeHead(content === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' })
      response.end(content ?? 'not here')
    }
  }

  /** Resets it to the state after a start. */
  clear(): void {
    this.handlers = new Map([['/', '<!doctype html><title>Home</title><h1>Home</h1>']])
    this.requests = []
    this.#server.closeAllConnections()
  }

  /** Lets the process exit while it listens. */
  unref(): void {
    this.#server.unref()
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
