import type { ApiKeyId, OrganizationId } from '@berth/contract/common/ids.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { readBearer } from '../../access/session-credentials.ts'
import { clientAddressOf } from '../../cluster/forwarded-requests.ts'
import type { AuditService } from './audit-service.ts'
import { pathWithoutSecrets, withoutSecrets } from './without-secrets.ts'

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS'])
const maxPathLength = 2048
const maxTextLength = 512

declare module 'fastify' {
  interface FastifyRequest {
    /** Set for requests below the address of a session. */
    sessionCaller: SessionCaller | undefined
    isAudited: boolean
  }
}

interface SessionCaller {
  readonly organizationId: OrganizationId
  readonly sessionId: string
  /** Set when the caller used a key instead of the session's token. */
  readonly keyId: ApiKeyId | undefined
}

/** Records every request of an authenticated caller that may change something, before its response is sent. */
export class RequestAudit {
  readonly #audit: AuditService

  constructor(audit: AuditService) {
    this.#audit = audit
  }

  attach(app: FastifyInstance): void {
    app.decorateRequest('sessionCaller', undefined)
    app.decorateRequest('isAudited', false)
    app.addHook('onSend', (request, reply, payload, done) => {
      this.record(request, reply, reply.statusCode)
      done(null, payload)
    })
  }

  /** Call once per request. Handlers that respond outside of Fastify call it themselves. */
  record(request: FastifyRequest, reply: FastifyReply, status: number): void {
    if (request.isAudited || readingMethods.has(request.method)) return
    const who = actorOf(request)
    if (!who) return
    request.isAudited = true
    const presented = readBearer(request.headers.authorization)
    const clean = (text: string | undefined) => withoutSecrets(text ?? '', presented).slice(0, maxTextLength)
    this.#audit.record({
      email: '',
      ...who,
      service: 'api',
      status,
      method: request.method,
      path: pathWithoutSecrets(pathOf(request.url), presented).slice(0, maxPathLength),
      route: (request.routeOptions.url ?? '').replaceAll(/:(\w+)/g, '{$1}'),
      domain: clean(request.headers.host),
      durationMilliseconds: Math.round(reply.elapsedTime),
      clientIp: clientAddressOf(request.raw),
      userAgent: clean(request.headers['user-agent']),
    })
  }
}

function actorOf({ caller, sessionCaller }: FastifyRequest) {
  const { organizationId } = caller ?? sessionCaller ?? {}
  if (organizationId === undefined) return undefined
  if (caller && 'handoffConnectionId' in caller) {
    return { organizationId, authStrategy: 'session_token', userId: caller.keyId }
  }
  if (caller?.token) {
    const { subject, email } = caller.token
    return { organizationId, authStrategy: 'oauth', userId: subject, email }
  }
  const keyId = caller?.keyId ?? sessionCaller?.keyId
  if (keyId !== undefined) return { organizationId, authStrategy: 'api_key', userId: keyId }
  return { organizationId, authStrategy: 'session_token', userId: sessionCaller?.sessionId ?? '' }
}
