import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { openApiDocument } from '../../openapi/openapi-document.ts'

/** The API document for programs (`/openapi.json`, `/spec.json`) and for people (`/docs`); nothing is loaded from elsewhere. */
export async function mountDocumentRoutes(app: FastifyInstance): Promise<void> {
  const document = openApiDocument()
  for (const path of ['/openapi.json', '/spec.json']) {
    app.get(path, (_request, reply) => reply.send(document))
  }
  await app.register(swagger, { mode: 'static', specification: { document: document as never } })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    theme: { title: 'berth API', css: [{ filename: 'berth.css', content: '.swagger-ui .topbar { display: none }' }] },
    uiConfig: { docExpansion: 'list', validatorUrl: null, persistAuthorization: true },
  })
}
