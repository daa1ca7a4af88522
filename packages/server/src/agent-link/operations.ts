import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { agentOperationsPath } from '@berth/contract/agent/agent-protocol.ts'
import type { Operation } from '@berth/contract/agent/operation.ts'
import { operations } from '@berth/contract/agent/operations.ts'
import { filledPath } from '@berth/contract/endpoint.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { abortedByClient, fastifyPath, foreignContentHeaders } from '@berth/runtime/http/mount.ts'
import { queryOf } from '@berth/runtime/http/query-string.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from '../access/caller.ts'
import type { SessionAccess } from '../access/session-access.ts'
import type { Session } from '../features/sessions/session.ts'
import type { SessionMachines } from '../features/sessions/session-machines.ts'
import type { SessionService } from '../features/sessions/session-service.ts'
import { sessionRoot } from '../features/sessions/session-urls.ts'
import { callAgent } from './agent-client.ts'
import { passedAnswerHeaders, passedRequestHeaders } from './passage-headers.ts'
import { queryWithoutToken } from './query-without-token.ts'

interface OperationsOptions {
  readonly callerOf: (headers: IncomingHttpHeaders) => Promise<Caller>
  readonly access: SessionAccess
  readonly sessions: SessionService
  readonly machines: SessionMachines
}

/** Of the client's request, what an operation may want to know; its key and its cookies stay here. */
const requestHeaders = [
  ...['content-type', 'content-length', 'content-encoding', 'accept'],
  ...['range', 'if-range', 'if-none-match', 'if-modified-since', 'last-event-id'],
]

/** Of the answer, what describes its content. An agent that was taken over sets no cookie and lifts no protection. */
const answerHeaders = [
  ...[
    'content-type',
    'content-length',
    'content-range',
    'content-disposition',
    'accept-ranges',
    'last-modified',
    'etag',
  ],
  ...['cache-control', 'retry-after', 'x-should-retry', 'x-sse-content-type', 'x-request-id'],
]

/** Serves every operation of the agents under both roots: checks who asks, finds the machine, and streams. */
export async function mountOperations(app: FastifyInstance, options: OperationsOptions): Promise<void> {
  const { callerOf, access, sessions, machines } = options
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    // Bodies go through unread: the agent knows what to make of them.
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null))

    for (const operation of operations) {
      if (!operation.isPassage) mountWithKey(scope, operation)
      mountWithToken(scope, operation)
    }
  })

  function mountWithKey(scope: FastifyInstance, operation: Operation): void {
    scope.route({
      method: operation.method,
      url: fastifyPath(operation.path),
      exposeHeadRoute: false,
      onRequest: async (request) => {
        request.caller = await callerOf(request.headers)
      },
      handler: async (request, reply) => {
        const { id_or_name: idOrName = '' } = request.params as Record<string, string>
        const { projectId } = request.caller as Caller
        return forward(operation, await sessions.get(projectId, idOrName, false), request, reply)
      },
    })
  }

  function mountWithToken(scope: FastifyInstance, operation: Operation): void {
    scope.route({
      method: operation.method,
      url: `${sessionRoot}/:session_id${fastifyPath(operation.agentPath)}`,
      exposeHeadRoute: false,
      handler: async (request, reply) => {
        const { session_id: sessionId } = request.params as Record<string, string>
        const token = new URLSearchParams(queryOf(request.url)).get('jwt')
        return forward(operation, await access.admit(token, sessionId), request, reply)
      },
    })
  }

  async function forward(
    operation: Operation,
    { id }: Session,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    const agentSocket = machines.getAgentSocket(id)
    const answer = await callAgent(agentSocket, {
      method: operation.method,
      path: agentPath(operation, request),
      headers: { ...requestHeadersOf(operation, request.headers), 'x-request-id': request.id },
      ...(hasBody(request.raw) && { body: request.raw }),
      // Not when it was answered before all of its body had come: the rest is taken, or it would never see the answer.
      signal: abortedByClient(reply),
    }).catch((cause: NodeJS.ErrnoException) => {
      throw new BerthError(wasNeverReached(cause) ? 'session_unreachable' : 'operation_interrupted', undefined, {
        cause,
      })
    })
    reply.hijack()
    const ownHeaders = reply.getHeaders() as OutgoingHttpHeaders
    reply.raw.writeHead(answer.statusCode ?? 502, {
      ...ownHeaders,
      ...answerHeadersOf(operation, answer.headers, request.headers),
    })
    // The head of a stream goes out before its first event.
    reply.raw.flushHeaders()
    // Either side's end is the other's, and there is nobody left to tell.
    await pipeline(answer, reply.raw).catch(() => reply.raw.destroy())
    return reply
  }
}

/** The path as the agent knows it, with the caller's own query but for the token. */
function agentPath({ agentPath: path }: Operation, request: FastifyRequest): string {
  const filled = filledPath(path, request.params as Record<string, string>)
  return `${agentOperationsPath}${filled}${queryWithoutToken(request.url)}`
}

function requestHeadersOf({ isPassage }: Operation, headers: IncomingHttpHeaders) {
  return isPassage ? passedRequestHeaders(headers) : pick(headers, requestHeaders)
}

function answerHeadersOf(
  { isPassage }: Operation,
  answer: IncomingHttpHeaders,
  caller: IncomingHttpHeaders,
): OutgoingHttpHeaders {
  if (!isPassage) return { ...pick(answer, answerHeaders), ...foreignContentHeaders }
  const passed: OutgoingHttpHeaders = passedAnswerHeaders(answer, caller)
  const policies = [
    foreignContentHeaders['content-security-policy'],
    passed['content-security-policy'] ?? [],
  ].flat() as string[]
  // An error of the other server is none of ours: a client that sends again by itself would send it twice.
  return Object.assign(passed, foreignContentHeaders, {
    'x-should-retry': 'false',
    'content-security-policy': policies,
  })
}

function pick(headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string | string[] | undefined> {
  return Object.fromEntries(names.filter((name) => headers[name] !== undefined).map((name) => [name, headers[name]]))
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function wasNeverReached({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ECONNREFUSED' || code === 'ENOENT'
}
