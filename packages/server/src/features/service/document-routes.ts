import { BerthError } from '@berth/contract/errors.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import { StaticAnswer } from '@berth/runtime/http/static-answer.ts'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { openApiDocument } from '../../openapi/openapi-document.ts'

const pagePath = '/docs'

/**
 * The page takes an API key from its reader, so nothing may run in it but its own files, and no other page may frame it.
 * Swagger UI sets styles on its elements.
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

/** The API document for programs (`/openapi.json`, `/spec.json`) and for people (`/docs`); nothing is loaded from elsewhere. */
export async function mountDocumentRoutes(app: FastifyInstance): Promise<void> {
  const document = openApiDocument()
  const answer = new StaticAnswer('application/json; charset=utf-8', Buffer.from(JSON.stringify(document)))
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
      // The key stays in the page's memory: what lies in localStorage is there for every script of this origin, for ever.
      uiConfig: { docExpansion: 'list', validatorUrl: null, persistAuthorization: false },
      uiHooks: { onRequest: answerDocument },
    })
  })

  /** In the place of the plugin, which writes the document anew for each request. */
  async function answerDocument(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    const path = pathOf(request.url)
    if (path === `${pagePath}/json`) return answer.send(request, reply)
    if (path === `${pagePath}/yaml`) throw new BerthError('route_not_found', { method: request.method, path })
    return undefined
  }
}
