import { agentDiscoveryPath } from '@berth/contract/agent/agent-endpoints.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { publicUrlOf } from '../access/public-url.ts'
import type { SessionAccess } from '../access/session-access.ts'
import type { SessionMachines } from '../features/sessions/session-machines.ts'
import { sessionRoot } from '../features/sessions/session-urls.ts'
import { askAgent } from './agent-client.ts'
import { queryWithoutToken } from './query-without-token.ts'

interface DiscoveryOptions {
  readonly access: SessionAccess
  readonly machines: SessionMachines
  readonly publicUrl: string | undefined
}

/**
 * The roots under which clients look for `/json/version` and its like: beside the websocket, below it (Playwright
 * appends to the address it was given) and at the top (Puppeteer drops the path); there the token names the session.
 */
const roots = [`${sessionRoot}/:session`, `${sessionRoot}/:session/cdp`, '']

/** The agent itself waits for a browser that is starting again. */
const answerLimitMilliseconds = 20_000

/** Serves Chromium's HTTP discovery with addresses that lead back through berth. */
export function mountDiscovery(app: FastifyInstance, { access, machines, publicUrl }: DiscoveryOptions): void {
  for (const root of roots) {
    for (const path of [agentDiscoveryPath, `${agentDiscoveryPath}/*`]) {
      app.route({ method: ['GET', 'PUT'], url: `${root}${path}`, handler: answer })
    }
  }

  async function answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { session: named, '*': rest } = request.params as { session?: string; '*'?: string }
    const query = new URLSearchParams(request.url.split('?')[1])
    const session = await access.admit(query.get('jwt'), named)
    const agentSocket = machines.getAgentSocket(session.id)

    // `/json/new?https://example.org` carries its address as the bare query: only the token is taken out.
    const path = `${agentDiscoveryPath}${rest === undefined ? '' : `/${rest.replace(/\/$/, '')}`}${queryWithoutToken(request.url)}`
    const signal = AbortSignal.timeout(answerLimitMilliseconds)
    const asked = askAgent(agentSocket, { method: request.method, path, signal })
    const { status, text } = await asked.catch((cause: unknown) => {
      throw new BerthError('session_unreachable', undefined, { cause })
    })
    if (status === 404) throw new BerthError('route_not_found', { method: request.method, path: pathOf(request.url) })
    if (status === 405) throw new BerthError('method_not_allowed', { allowed: 'PUT' })
    reply.code(status)
    if (!isJson(text)) return reply.type('text/plain; charset=utf-8').send(text)
    const address = { base: publicUrlOf(request.raw, publicUrl), id: session.id, token: query.get('jwt') ?? '' }
    return reply.type('application/json; charset=utf-8').send(rewriteAddresses(JSON.parse(text), address))
  }
}

interface PublicAddress {
  readonly base: string
  readonly id: SessionId
  readonly token: string
}

/** Replaces the addresses of Chromium's own port; everything else of the documents stays as it is. */
export function rewriteAddresses(document: unknown, address: PublicAddress): unknown {
  if (Array.isArray(document)) return document.map((entry) => rewriteAddresses(entry, address))
  if (typeof document !== 'object' || document === null) return document
  const entry = { ...(document as Record<string, unknown>) }
  const internal = URL.parse(String(entry.webSocketDebuggerUrl ?? ''))
  if (!internal) return entry

  const websocket = `${address.base.replace(/^http/, 'ws')}${sessionRoot}/${address.id}${internal.pathname}?jwt=${address.token}`
  entry.webSocketDebuggerUrl = websocket
  if (typeof entry.devtoolsFrontendUrl === 'string')
    entry.devtoolsFrontendUrl = frontendFor(entry.devtoolsFrontendUrl, websocket)
  return entry
}

/** The frontend takes the address without its scheme, in a parameter that names the scheme. */
function frontendFor(frontend: string, websocket: string): string {
  const [scheme, rest] = websocket.split('://')
  const page = frontend.split('?', 1)[0]
  return `${page}?${scheme}=${encodeURIComponent(rest ?? '')}`
}

function isJson(text: string): boolean {
  return text.startsWith('{') || text.startsWith('[')
}
