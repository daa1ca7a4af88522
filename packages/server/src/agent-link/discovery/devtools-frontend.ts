import type { OutgoingHttpHeaders } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { devToolsUpgrade } from '@berth/contract/agent/agent-upgrades.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import { limitBytes } from '@berth/runtime/stream/limit-bytes.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { publicUrlOf } from '../../access/public-url.ts'
import type { SessionAccess } from '../../access/session-access.ts'
import { readSessionCredentials, type SessionCredentials } from '../../access/session-credentials.ts'
import type { SessionMachines } from '../../features/sessions/machines/session-machines.ts'
import { sessionRoot } from '../../features/sessions/records/session-urls.ts'
import { callAgent, requestAgent } from '../agent-client.ts'

interface FrontendOptions {
  readonly access: SessionAccess
  readonly machines: SessionMachines
  readonly publicUrl: string | undefined
}

const answerLimitMilliseconds = 30_000
/** The largest file has several megabytes. */
const maxFileBytes = 32 * 1024 * 1024

/** Content types are set here, regardless of what the agent sends. */
const types: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  json: 'application/json; charset=utf-8',
  svg: 'image/svg+xml',
  avif: 'image/avif',
  png: 'image/png',
  woff2: 'font/woff2',
  wasm: 'application/wasm',
}

/**
 * The files come from the session and may be hostile. They run as a page with an opaque origin, which has no access to
 * berth, and only such pages may read them.
 */
const headers = {
  'content-security-policy': 'sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads',
  'access-control-allow-origin': '*',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

/** A page with an opaque origin has no storage, but DevTools needs one for its settings and cache. */
const storageScript = `for (const name of ['localStorage', 'sessionStorage']) {
  const kept = new Map()
  const storage = {
    getItem: (key) => kept.get(String(key)) ?? null,
    setItem: (key, value) => void kept.set(String(key), String(value)),
    removeItem: (key) => void kept.delete(String(key)),
    clear: () => kept.clear(),
    key: (index) => [...kept.keys()][index] ?? null,
    get length() { return kept.size },
  }
  const value = new Proxy(storage, {
    get: (target, key) => (key in target ? target[key] : kept.get(key)),
    set: (target, key, value) => (kept.set(key, String(value)), true),
    has: (target, key) => key in target || kept.has(key),
    deleteProperty: (target, key) => (kept.delete(key), true),
    ownKeys: () => [...kept.keys()],
    getOwnPropertyDescriptor: (target, key) =>
      kept.has(key) ? { value: kept.get(key), enumerable: true, configurable: true, writable: true } : undefined,
  })
  Object.defineProperty(globalThis, name, { value, configurable: true })
}
const addressOf = (request) => String(request.url ?? request)
class MemoryCache {
  kept = new Map()
  async match(request) { return this.kept.get(addressOf(request))?.clone() }
  async matchAll(request) { return [await this.match(request)].filter(Boolean) }
  async put(request, response) { this.kept.set(addressOf(request), response.clone()) }
  async add(request) { await this.put(request, await fetch(request)) }
  async addAll(requests) { await Promise.all(requests.map((request) => this.add(request))) }
  async delete(request) { return this.kept.delete(addressOf(request)) }
  async keys() { return [...this.kept.keys()].map((address) => new Request(address)) }
}
const opened = new Map()
const caches = {
  async open(name) { return opened.get(name) ?? opened.set(name, new MemoryCache()).get(name) },
  async has(name) { return opened.has(name) },
  async delete(name) { return opened.delete(name) },
  async keys() { return [...opened.keys()] },
  async match(request) {
    for (const cache of opened.values()) {
      const found = await cache.match(request)
      if (found) return found
    }
  },
}
Object.defineProperty(globalThis, 'caches', { value: caches, configurable: true })
`
const storageFile = 'berth-storage.js'

/**
 * Serves Chromium's bundled DevTools below the session: `/s/{session}/devtools/inspector.html?jwt=…&ws=…`. The page's
 * own files have the token in their path, because relative URLs drop the query.
 */
export function mountDevToolsFrontend(app: FastifyInstance, { access, machines, publicUrl }: FrontendOptions): void {
  app.get(`${sessionRoot}/:session${devToolsUpgrade.path}*`, answer)

  async function answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { session: named, '*': rest = '' } = request.params as { session?: string; '*'?: string }
    const { credentials, file } = splitToken(rest, request)
    const session = await access.admit(credentials, named)
    const type = types[/\.([a-z0-9]+)$/.exec(file)?.[1] ?? '']
    if (!isPlainPath(file) || type === undefined) throw notFound(request)
    reply.headers(headers).type(type)
    if (file === storageFile) return reply.send(storageScript)

    const machine = machines.get(session.id)
    const signal = AbortSignal.timeout(answerLimitMilliseconds)
    const asked = { method: 'GET', path: `${devToolsUpgrade.path}${file}`, signal }
    if (file.endsWith('.html')) {
      const { status, text } = await requestAgent(machine, asked).catch(throwUnreachable)
      if (status !== 200) throw notFound(request)
      const root = `${publicUrlOf(request.raw, publicUrl)}${sessionRoot}/${session.id}${devToolsUpgrade.path}`
      const base = `${root}${await access.tokenOf(session)}/`
      return reply.send(withBase(text, base))
    }
    const response = await callAgent(machine, asked).catch(throwUnreachable)
    if (response.statusCode !== 200) {
      response.destroy()
      throw notFound(request)
    }
    reply.hijack()
    reply.raw.writeHead(200, reply.getHeaders() as OutgoingHttpHeaders)
    const content = limitBytes(maxFileBytes, 'a file of DevTools is too large')
    await pipeline(response, content, reply.raw).catch(() => reply.raw.destroy())
    return reply
  }
}

function throwUnreachable(cause: unknown): never {
  throw new BerthError('session_unreachable', undefined, { cause })
}

/** The URL of the DevTools front end for the target with this WebSocket URL. */
export function frontendUrl(sessionAddress: string, token: string, websocket: string): string {
  const [scheme = 'ws', rest = ''] = websocket.split('://')
  return `${sessionAddress}${devToolsUpgrade.path}inspector.html?jwt=${token}&${scheme}=${encodeURIComponent(rest)}`
}

/** The page carries its token like every request. Its files carry it in their path. */
function splitToken(
  rest: string,
  request: FastifyRequest,
): { readonly credentials: SessionCredentials; readonly file: string } {
  const [, inPath, file = ''] = /^([\w-]+\.[\w-]+\.[\w-]+)\/(.*)$/.exec(rest) ?? []
  if (inPath !== undefined) return { credentials: { token: inPath, bearer: undefined }, file }
  return { credentials: readSessionCredentials(request.raw), file: rest }
}

function isPlainPath(file: string): boolean {
  return /^[\w./-]+$/.test(file) && !file.split('/').some((part) => part === '' || part === '.' || part === '..')
}

/** The page's own policy permits only its origin, and here it has none. */
function withBase(html: string, base: string): string {
  const added = `<base href="${base}"><script src="${storageFile}"></script>`
  const place = [/<meta charset[^>]*>/i, /<head[^>]*>/i, /<!doctype html>/i].find((start) => start.test(html)) ?? /^/
  return html
    .replace(/<meta\s+http-equiv="Content-Security-Policy"[^>]*>/i, '')
    .replace(place, (start) => `${start}${added}`)
}

function notFound({ method, url }: FastifyRequest): BerthError {
  return new BerthError('route_not_found', { method, path: pathOf(url) })
}
