import { agentDiscoveryPath } from '@berth/contract/agent/agent-protocol.ts'
import { cdpUpgrade } from '@berth/contract/agent/agent-upgrades.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import { checkText } from '@berth/runtime/http/json-body.ts'
import { foreignContentHeaders } from '@berth/runtime/http/mount.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { publicUrlOf } from '../../access/public-url.ts'
import type { SessionAccess } from '../../access/session-access.ts'
import { readSessionCredentials, readTokenQuery } from '../../access/session-credentials.ts'
import type { ReachableMachine } from '../../drivers/driver.ts'
import type { SessionMachines } from '../../features/sessions/machines/session-machines.ts'
import { sessionRoot } from '../../features/sessions/records/session-urls.ts'
import { requestAgent } from '../agent-client.ts'
import { devToolsProtocol } from './devtools-protocol.ts'
import { rebuildDiscoveryResponse } from './discovery-responses.ts'

interface DiscoveryOptions {
  readonly access: SessionAccess
  readonly machines: SessionMachines
  readonly publicUrl: string | undefined
}

/**
 * The roots where clients request `/json/version` and the like: beside the WebSocket, below it (Playwright appends to
 * its URL) and at the top (Puppeteer drops the path). At the top, the token identifies the session.
 */
const roots = [`${sessionRoot}/:session`, `${sessionRoot}/:session${cdpUpgrade.path}`, '']

/** The agent itself waits for a browser that is restarting. */
const answerLimitMilliseconds = 20_000
/** Enough for some thousand tabs. Reading more would delay other requests. */
const maxAnswerBytes = 4 * 1024 * 1024

/** Serves Chromium's HTTP discovery with URLs that lead back through berth. */
export function mountDiscovery(app: FastifyInstance, { access, machines, publicUrl }: DiscoveryOptions): void {
  for (const root of roots) {
    app.get(root || '/', answerAppended)
    for (const path of [agentDiscoveryPath, `${agentDiscoveryPath}/*`]) {
      app.route({ method: ['GET', 'PUT'], url: `${root}${path}`, handler: answerPath })
    }
  }

  /** Playwright up to 1.52 appends to the whole URL, including its query: `/s/{session}/cdp?jwt=…/json/version/`. */
  async function answerAppended(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { appendedPath } = readTokenQuery(request.url)
    if (appendedPath !== undefined) return answer(request, reply, appendedPath.slice(agentDiscoveryPath.length))
    reply.callNotFound()
    return reply
  }

  async function answerPath(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { '*': rest } = request.params as { '*'?: string }
    return answer(request, reply, rest ? `/${rest.replace(/\/$/, '')}` : '')
  }

  /** `path` is the path below `/json`. */
  async function answer(request: FastifyRequest, reply: FastifyReply, path: string): Promise<FastifyReply> {
    const { session: named } = request.params as { session?: string }
    const credentials = readSessionCredentials(request)
    if (path === '/protocol' && credentials.token === undefined && credentials.bearer === undefined) {
      return (await devToolsProtocol()).send(request, reply)
    }
    if (named !== undefined) checkText(named)
    const session = await access.admit(credentials, named)
    const machine = machines.get(session.id)

    // `/json/new?https://example.org` uses the bare query as a URL, so only the token is removed.
    const agentPath = `${agentDiscoveryPath}${path.split('/').map(encodeURIComponent).join('/')}${readTokenQuery(request.url).rest}`
    const text = await ask(machine, request, agentPath)
    const address = {
      base: publicUrlOf(request.raw, publicUrl),
      id: session.id,
      token: await access.tokenOf(session),
    }
    const rebuilt = rebuild(path, text, address)
    reply.headers(foreignContentHeaders)
    return reply.type(typeof rebuilt === 'string' ? 'text/plain; charset=utf-8' : 'application/json').send(rebuilt)
  }
}

/** Returns the agent's successful response. */
async function ask(machine: ReachableMachine, { method, url }: FastifyRequest, path: string): Promise<string> {
  const signal = AbortSignal.timeout(answerLimitMilliseconds)
  const asked = method === 'HEAD' ? 'GET' : method
  const { status, text } = await requestAgent(machine, { method: asked, path, signal, maxBytes: maxAnswerBytes }).catch(
    throwUnreachable,
  )
  if (status === 404) throw new BerthError('route_not_found', { method, path: pathOf(url) })
  if (status === 405) throw new BerthError('method_not_allowed', { allowed: 'PUT' })
  if (status !== 200) return throwUnreachable(new Error(`the agent responded to ${pathOf(path)} with ${status}`))
  return text
}

function rebuild(...answer: Parameters<typeof rebuildDiscoveryResponse>) {
  try {
    return rebuildDiscoveryResponse(...answer)
  } catch (cause) {
    return throwUnreachable(cause)
  }
}

function throwUnreachable(cause: unknown): never {
  throw new BerthError('session_unreachable', undefined, { cause })
}
