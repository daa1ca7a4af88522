import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { agentOperationsPath } from '@berth/contract/agent/agent-protocol.ts'
import type { Operation } from '@berth/contract/agent/operation.ts'
import { operations } from '@berth/contract/agent/operations.ts'
import { filledPath } from '@berth/contract/endpoint.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { checkText } from '@berth/runtime/http/json-body.ts'
import { abortedByClient, fastifyPath } from '@berth/runtime/http/mount.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from '../access/caller.ts'
import type { SessionAccess } from '../access/session-access.ts'
import { readSessionCredentials, readTokenQuery } from '../access/session-credentials.ts'
import type { RequestAudit } from '../features/audit/request-audit.ts'
import type { OrganizationStore } from '../features/organizations/organization-store.ts'
import type { SessionMachines } from '../features/sessions/machines/session-machines.ts'
import type { SessionResolver } from '../features/sessions/records/resolve-session.ts'
import type { ResolvedSession } from '../features/sessions/records/session-store.ts'
import { sessionRoot } from '../features/sessions/records/session-urls.ts'
import { callAgent } from './agent-client.ts'
import { passedRequestHeaders } from './pass-through-headers.ts'
import { pick, responseHeadFor } from './relay/response-head.ts'
import type { SessionConnections } from './relay/session-connections.ts'

interface OperationsOptions {
  readonly callerOf: (headers: IncomingHttpHeaders) => Promise<Caller>
  readonly access: SessionAccess
  readonly resolver: SessionResolver
  readonly machines: SessionMachines
  readonly connections: SessionConnections
  readonly organizations: OrganizationStore
  readonly requestAudit: RequestAudit
}

/** The request headers that operations may use. The caller's key and cookies are not forwarded. */
const requestHeaders = [
  ...['content-type', 'content-length', 'content-encoding', 'accept'],
  ...['range', 'if-range', 'if-none-match', 'if-modified-since', 'last-event-id', 'x-stainless-retry-count'],
]

/** Serves every operation of the agents under both roots: checks access, finds the machine, and streams both ways. */
export async function mountOperations(app: FastifyInstance, options: OperationsOptions): Promise<void> {
  const { callerOf, access, resolver, machines, connections, organizations, requestAudit } = options
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    // Bodies pass unparsed. The agent parses them.
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null))

    for (const operation of operations) {
      if (!operation.isPassThrough) mountWithKey(scope, operation)
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
        checkText(idOrName)
        const { projectId } = request.caller as Caller
        const session = await resolver.resolve({ projectId }, idOrName)
        using _registered = connections.add(session.id, () => reply.raw.destroy())
        return await forward(operation, session, request, reply)
      },
    })
  }

  function mountWithToken(scope: FastifyInstance, operation: Operation): void {
    scope.route({
      method: operation.method,
      url: `${sessionRoot}/:session_id${fastifyPath(operation.agentPath)}`,
      exposeHeadRoute: false,
      handler: async (request, reply) => {
        const { session_id: sessionId = '' } = request.params as Record<string, string>
        checkText(sessionId)
        using _registered = connections.add(sessionId, () => reply.raw.destroy())
        const credentials = readSessionCredentials(request)
        // The Authorization header of a pass-through request is for the other server.
        const shown = operation.isPassThrough ? { ...credentials, bearer: undefined } : credentials
        const session = await access.admit(shown, sessionId)
        const organizationId = await organizations.organizationOf(session.project_id)
        request.sessionCaller = { organizationId, sessionId: session.id, keyId: session.keyId }
        return await forward(operation, session, request, reply)
      },
    })
  }

  async function forward(
    operation: Operation,
    { id }: ResolvedSession,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    const machine = machines.get(id)
    const answer = await callAgent(machine, {
      method: operation.method,
      path: agentPath(operation, request),
      headers: { ...requestHeadersOf(operation, request.headers), 'x-request-id': request.id },
      ...(hasBody(request.raw) && { body: request.raw }),
      // Not aborted when the response is complete before the body: the rest of the body is still received, otherwise
      // the client would not see the response.
      signal: abortedByClient(reply),
    }).catch((cause: NodeJS.ErrnoException) => {
      throw new BerthError(wasNeverReached(cause) ? 'session_unreachable' : 'operation_interrupted', undefined, {
        cause,
      })
    })
    const head = responseHeadFor(operation, answer, request.headers)
    if (!head) {
      answer.destroy()
      throw new BerthError('operation_interrupted', undefined, {
        cause: new Error(`the agent responded to ${operation.operationId} with status ${answer.statusCode}`),
      })
    }
    requestAudit.record(request, reply, head.status)
    reply.hijack()
    reply.raw.writeHead(head.status, { ...(reply.getHeaders() as OutgoingHttpHeaders), ...head.headers })
    // Sends the headers of a stream before its first event.
    reply.raw.flushHeaders()
    // The end of either side ends the other. Nobody is left to report to.
    await pipeline(answer, reply.raw).catch(() => reply.raw.destroy())
    return reply
  }
}

/** The path at the agent, with the caller's query without the token. */
function agentPath({ agentPath: path }: Operation, request: FastifyRequest): string {
  const filled = filledPath(path, request.params as Record<string, string>)
  return `${agentOperationsPath}${filled}${readTokenQuery(request.url).rest}`
}

function requestHeadersOf({ isPassThrough }: Operation, headers: IncomingHttpHeaders) {
  return isPassThrough ? passedRequestHeaders(headers) : pick(headers, requestHeaders)
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function wasNeverReached({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ECONNREFUSED' || code === 'ENOENT'
}
