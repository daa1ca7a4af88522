import { BerthError } from '@berth/contract/errors.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import { StaticResponse } from '@berth/runtime/http/static-response.ts'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

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

/** The plugin demands one for the routes that are replaced below. */
const unreadDocument = { openapi: '3.1.0', info: { title: 'berth', version: '' }, paths: {} }

/**
 * Serves the API document for programs (`/openapi.json`, `/spec.json`) and for people (`/docs`). The page loads nothing
 * from other hosts.
 */
export async function mountDocumentRoutes(app: FastifyInstance): Promise<void> {
  let answer: Promise<StaticResponse> | undefined
  const answerDocument = async (request: FastifyRequest, reply: FastifyReply) => {
    answer ??= writeDocument()
    return (await answer).send(request, reply)
  }
  for (const path of ['/openapi.json', '/spec.json']) app.get(path, answerDocument)
  await app.register(async (scope) => {
    scope.addHook('onSend', async (_request, reply) => void reply.headers(pageHeaders))
    await scope.register(swagger, { mode: 'static', specification: { document: unreadDocument } })
    await scope.register(swaggerUi, {
      routePrefix: pagePath,
      staticCSP: pagePolicy,
      theme: { title: 'berth API', css: [{ filename: 'berth.css', content: '.swagger-ui .topbar { display: none }' }] },
      // The key stays in the memory of the page: every script of this origin could read localStorage, at any later
      // time.
      uiConfig: { docExpansion: 'list', validatorUrl: null, persistAuthorization: false },
      uiHooks: { onRequest: replacePluginRoutes },
    })
  })

  /** The page's own document has to be that of all, and sent from one buffer. */
  async function replacePluginRoutes(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    const path = pathOf(request.url)
    if (path === `${pagePath}/json`) return answerDocument(request, reply)
    if (path === `${pagePath}/yaml`) throw new BerthError('route_not_found', { method: request.method, path })
    return undefined
  }
}

/** On demand: most servers start and end without a reader, and it takes longer than mounting all routes. */
async function writeDocument(): Promise<StaticResponse> {
  const { openApiDocument } = await import('../../openapi/openapi-document.ts')
  return new StaticResponse('application/json; charset=utf-8', Buffer.from(JSON.stringify(openApiDocument())))
}
