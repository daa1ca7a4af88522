import { BerthError } from '@berth/contract/errors.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import { StaticResponse } from '@berth/runtime/http/static-response.ts'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { openApiDocument } from '../../openapi/openapi-document.ts'

const pagePath = '/docs'

/**
 * Users enter an API key in this page, so it may run only its own files and cannot be framed. Swagger UI sets inline
 * styles.
 */
const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')
const pageHeaders = {
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
}

/**
 * Serves the API document for programs (`/openapi.json`, `/spec.json`) and for people (`/docs`). The page loads nothing
 * from other hosts.
 */
export async function mountDocumentRoutes(app: FastifyInstance): Promise<void> {
  const document = openApiDocument()
  const answer = new StaticResponse('application/json; charset=utf-8', Buffer.from(JSON.stringify(document)))
  for (const path of ['/openapi.json', '/spec.json']) {
    app.get(path, (request, reply) => answer.send(request, reply))
  }
  await app.register(async (scope) => {
    scope.addHook('onSend', async (_request, reply) => void reply.headers(pageHeaders))
    await scope.register(swagger, { mode: 'static', specification: { document: document as never } })
    await scope.register(swaggerUi, {
      routePrefix: pagePath,
      staticCSP: pagePolicy,
      theme: { title: 'berth API', css: [{ filename: 'berth.css', content: '.swagger-ui .topbar { display: none }' }] },
      // The key stays in the memory of the page: every script of this origin could read localStorage, at any later
      // time.
      uiConfig: { docExpansion: 'list', validatorUrl: null, persistAuthorization: false },
      uiHooks: { onRequest: answerDocument },
    })
  })

  /** Replaces the plugin's route, which builds the document again for each request. */
  async function answerDocument(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    const path = pathOf(request.url)
    if (path === `${pagePath}/json`) return answer.send(request, reply)
    if (path === `${pagePath}/yaml`) throw new BerthError('route_not_found', { method: request.method, path })
    return undefined
  }
}
