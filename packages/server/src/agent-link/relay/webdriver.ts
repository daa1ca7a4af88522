import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { agentWebDriverPath, agentWebDriverSessionPath } from '@berth/contract/agent/agent-protocol.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { toBerthError } from '@berth/runtime/http/error-reply.ts'
import { checkText } from '@berth/runtime/http/json-body.ts'
import { abortedByClient, foreignContentHeaders } from '@berth/runtime/http/mount.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { limitBytes } from '@berth/runtime/stream/limit-bytes.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { publicUrlOf } from '../../access/public-url.ts'
import type { SessionAccess } from '../../access/session-access.ts'
import type { SessionMachines } from '../../features/sessions/machines/session-machines.ts'
import type { ResolvedSession } from '../../features/sessions/records/session-store.ts'
import { sessionRoot, sessionUrls, webDriverSessionUrls } from '../../features/sessions/records/session-urls.ts'
import { callAgent } from '../agent-client.ts'
import type { SessionConnections } from './session-connections.ts'
import { webDriverAddress } from './webdriver-address.ts'

interface WebDriverOptions {
  readonly access: SessionAccess
  readonly machines: SessionMachines
  readonly connections: SessionConnections
  readonly logger: Logger
  readonly publicUrl: string | undefined
}

const head = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-cache',
  ...foreignContentHeaders,
}
const maxNewSessionBytes = 1024 * 1024
const tokenHint =
  'Clients that drop the query of an address take the token as its password, as http://jwt:<token>@host/…, or as the header Authorization: Bearer <token>.'

/**
 * Serves classic WebDriver at the http form of `webdriver_ws_url`. Commands go to the agent unchanged. The response to
 * a new session gets the URLs of BiDi and CDP. Errors have the format of WebDriver (§6.6).
 */
export async function mountWebDriver(app: FastifyInstance, options: WebDriverOptions): Promise<void> {
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    // Bodies pass unparsed.
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
    scope.setErrorHandler((thrown, request, reply) => sendWebDriverError(toBerthError(thrown), request, reply, options))
    const root = `${sessionRoot}/:session${agentWebDriverPath}`
    for (const url of [root, `${root}/*`]) {
      scope.route({ method: ['GET', 'POST', 'DELETE'], url, exposeHeadRoute: false, handler: answer })
    }
  })

  async function answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { session: named = '' } = request.params as { session?: string }
    checkText(named)
    using _registered = options.connections.add(named, () => reply.raw.destroy())
    const { path, token, bearer } = webDriverAddress(rootOf(named), request.url, request.headers)
    const session = await options.access.admit({ token, bearer }, named)
    const isPost = request.method === 'POST'
    const answered = await callAgent(options.machines.get(session.id), {
      method: request.method,
      path: `${agentWebDriverPath}${path}`,
      headers: { 'x-request-id': request.id, ...(isPost && lengthOf(request)) },
      ...(isPost && { body: request.raw }),
      signal: abortedByClient(reply),
    }).catch((cause: unknown) => {
      throw new BerthError('session_unreachable', undefined, { cause })
    })
    const isNew = isPost && `${agentWebDriverPath}${path}` === agentWebDriverSessionPath
    if (isNew && answered.statusCode === 200) {
      const created = await readNewSession(answered)
      return reply.headers(head).send(withAddresses(created, await webDriverUrlOf(session, request)))
    }
    const status = statusOf(answered)
    reply.hijack()
    reply.raw.writeHead(status, { ...(reply.getHeaders() as IncomingHttpHeaders), ...head })
    await pipeline(answered, reply.raw).catch(() => reply.raw.destroy())
    return reply
  }

  async function webDriverUrlOf(session: ResolvedSession, request: FastifyRequest): Promise<string> {
    const token = await options.access.tokenOf(session)
    return sessionUrls(publicUrlOf(request.raw, options.publicUrl), session.id, token).webdriver_ws_url
  }
}

function rootOf(session: string): string {
  return `${sessionRoot}/${session}${agentWebDriverPath}`
}

function lengthOf({ headers }: FastifyRequest): { readonly 'content-length'?: string } {
  const length = headers['content-length']
  return length === undefined ? {} : { 'content-length': length }
}

interface NewSession {
  readonly value: { readonly sessionId: string; readonly capabilities: Readonly<Record<string, unknown>> }
}

/** The response of a compromised agent may contain anything. */
async function readNewSession(answer: IncomingMessage): Promise<NewSession> {
  try {
    const limit = limitBytes(maxNewSessionBytes, 'the answer to a new WebDriver session is too long')
    const [read] = await Promise.all([text(limit), pipeline(answer, limit)])
    const { value } = JSON.parse(read)
    if (typeof value.sessionId !== 'string' || typeof value.capabilities !== 'object') throw new Error('no session')
    return { value }
  } catch (cause) {
    throw new BerthError('session_unreachable', undefined, { cause })
  }
}

function withAddresses({ value }: NewSession, webdriverUrl: string): NewSession {
  const { sessionId, capabilities } = value
  const addresses = {
    ...webDriverSessionUrls(webdriverUrl, sessionId),
    'se:cdpVersion': String(capabilities.browserVersion ?? ''),
  }
  return { value: { sessionId, capabilities: { ...capabilities, ...addresses } } }
}

function statusOf({ statusCode = 0 }: IncomingMessage): number {
  if (statusCode >= 200 && statusCode <= 599) return statusCode
  throw new BerthError('session_unreachable', undefined, { cause: new Error(`the agent responded with ${statusCode}`) })
}

/** Maps berth's errors to the names that WebDriver defines. */
function webDriverErrorOf({ code, status }: BerthError, request: FastifyRequest): string {
  if (status === 404) return code === 'route_not_found' ? 'unknown command' : 'invalid session id'
  if (request.method === 'POST' && /\/session\/?(\?|$)/.test(request.url)) return 'session not created'
  return status === 400 ? 'invalid argument' : 'unknown error'
}

function sendWebDriverError(
  error: BerthError,
  request: FastifyRequest,
  reply: FastifyReply,
  { logger }: WebDriverOptions,
): FastifyReply {
  if (error.status >= 500) logger.error({ err: error.cause ?? error, requestId: request.id }, error.message)
  const message = error.code === 'unauthorized' ? `${error.message} ${tokenHint}` : error.message
  const value = { error: webDriverErrorOf(error, request), message, stacktrace: '', data: { code: error.code } }
  return reply.code(error.status).headers(head).send({ value })
}
