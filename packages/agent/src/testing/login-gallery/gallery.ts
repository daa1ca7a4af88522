import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { codeLanguageSites, endless, fieldSites } from './field-sites.ts'
import { httpSites } from './http-sites.ts'
import { providerSites } from './provider-sites.ts'
import { languageSites, simpleSites } from './simple-sites.ts'
import { code, evil, password, type Reply, type Site, type Visit, wrongPassword } from './site.ts'
import { stepSites } from './step-sites.ts'

export const sites: readonly Site[] = [
  ...simpleSites,
  ...languageSites,
  ...stepSites,
  ...providerSites,
  ...fieldSites,
  ...httpSites,
  ...codeLanguageSites,
]

const secrets = [password, wrongPassword, code]

/** Where a secret has arrived. */
export interface Arrival {
  readonly secret: string
  readonly host: string
  readonly path: string
}

/** One server for the hosts of all sites. It records where every secret arrives. */
export class Gallery {
  readonly arrivals: Arrival[] = []
  readonly #memories = new Map<string, Map<string, unknown>>()

  memoryOf(name: string): Map<string, unknown> {
    const memory = this.#memories.get(name) ?? new Map<string, unknown>()
    this.#memories.set(name, memory)
    return memory
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '')
    const body = await text(request)
    const basic = basicOf(request)
    this.#record(url, body, basic)
    const site = [...sites, endless].find(
      ({ name, pages }) =>
        url.hostname === `${name}.test` || Object.keys(pages).some((path) => path.startsWith(`${url.hostname}/`)),
    )
    const own = site && url.hostname === `${site.name}.test`
    const handler = site?.pages[own ? url.pathname : `${url.hostname}${url.pathname}`]
    if (!site || !handler)
      return void response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Not found</h1>')
    const cookies = new Map(
      (request.headers.cookie ?? '').split('; ').map((pair) => pair.split('=', 2) as [string, string]),
    )
    const visit: Visit = {
      host: url.hostname,
      path: url.pathname,
      query: url.searchParams,
      sent: new URLSearchParams(body),
      method: request.method ?? '',
      isLoggedIn: cookies.has('session'),
      basic,
      authorization: request.headers.authorization,
      cookies,
      memory: this.memoryOf(site.name),
    }
    send(response, handler(visit))
  }

  #record(url: URL, body: string, basic: string | undefined): void {
    const arrived = this.arrivals.some(
      ({ host, path, secret }) => host === url.hostname && path === 'basic' && secret === password,
    )
    for (const secret of secrets) {
      // After a successful login, browsers send it with each request to the host.
      if (basic?.endsWith(`:${secret}`) && !(secret === password && arrived))
        this.arrivals.push({ secret, host: url.hostname, path: 'basic' })
    }
    const sent = `${decodeURIComponent(url.search.replace(/\+/g, ' '))} ${body} ${decodeForm(body)}`
    for (const secret of secrets) {
      if (sent.includes(secret)) this.arrivals.push({ secret, host: url.hostname, path: url.pathname })
    }
    if (url.hostname === evil && url.pathname === '/take')
      this.arrivals.push({ secret: 'a request', host: evil, path: sent })
  }
}

function basicOf({ headers }: IncomingMessage): string | undefined {
  const encoded = /^Basic (.+)$/.exec(headers.authorization ?? '')?.[1]
  return encoded && Buffer.from(encoded, 'base64').toString()
}

function decodeForm(body: string): string {
  try {
    return decodeURIComponent(body.replace(/\+/g, ' '))
  } catch {
    return ''
  }
}

function send(response: ServerResponse, reply: Reply | string): void {
  const {
    status = 200,
    html = '',
    json,
    location,
    cookies = [],
    headers = {},
  }: Reply = typeof reply === 'string' ? { html: reply } : reply
  const type = json ? 'application/json' : 'text/html; charset=utf-8'
  response.writeHead(status, {
    'content-type': type,
    ...headers,
    ...(location !== undefined && { location }),
    'set-cookie': [...cookies],
  })
  response.end(json ? JSON.stringify(json) : html)
}
