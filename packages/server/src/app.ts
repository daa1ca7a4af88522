import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { BerthError } from '@berth/contract/errors.ts'
import { errorBody, replyWithErrors, sendError, toBerthError } from '@berth/runtime/http/error-reply.ts'
import { acceptJsonBodies } from '@berth/runtime/http/json-body.ts'
import { endWithAnswer } from '@berth/runtime/http/raw-answer.ts'
import cors from '@fastify/cors'
import Fastify, { type FastifyInstance } from 'fastify'
import { authenticate } from './access/authenticate.ts'
import { mountForCallers } from './access/mount-for-callers.ts'
import { mountDiscovery } from './agent-link/discovery.ts'
import { mountOperations } from './agent-link/operations.ts'
import { mountExtensionRoutes } from './features/extensions/extension-routes.ts'
import { mountProfileRoutes } from './features/profiles/profile-routes.ts'
import { mountProxyRoutes } from './features/proxies/proxy-routes.ts'
import { mountDocumentRoutes } from './features/service/document-routes.ts'
import { mountMetrics } from './features/service/metrics.ts'
import { mountServiceRoutes } from './features/service/service-routes.ts'
import { mountSessionExtensionRoutes } from './features/sessions/session-extension-routes.ts'
import { mountSessionRoutes } from './features/sessions/session-routes.ts'
import type { Services } from './services.ts'

/** A Chrome policy may take 5 MiB, and the rest of a body is small. */
const bodyLimitBytes = 8 * 1024 * 1024
/** Names have at most 255 characters, and percent-encoding may triple them. */
const maxPathParameterLength = 1024
const headersLimitMilliseconds = 20_000

export interface AppOptions {
  readonly publicUrl: string | undefined
  readonly metrics: boolean
  readonly isClosing: () => boolean
}

/** Every route of the server. */
export async function createApp(
  services: Services,
  { publicUrl, metrics, isClosing }: AppOptions,
): Promise<FastifyInstance> {
  const app = Fastify({
    bodyLimit: bodyLimitBytes,
    routerOptions: { maxParamLength: maxPathParameterLength },
    frameworkErrors: (error, _request, reply) => sendError(reply, toBerthError(error)),
    clientErrorHandler: refuseMalformedRequest,
    return503OnClosing: false,
    // How long a body may take is decided where it is read: an upload may take its time, a JSON body may not.
    requestTimeout: 0,
    http: { headersTimeout: headersLimitMilliseconds, requireHostHeader: false },
    genReqId: () => randomUUID(),
  })
  app.decorateRequest('caller', undefined)
  acceptJsonBodies(app)
  const callerOf = (headers: IncomingHttpHeaders) => authenticate(headers, services.keys, services.organizations)
  replyWithErrors(app, services.logger, { admit: ({ headers }) => callerOf(headers) })
  app.addHook('onRequest', async () => {
    if (isClosing()) throw new BerthError('shutting_down')
  })
  // Of a request that was under way when the server began to stop, the connection would keep it from its end.
  app.addHook('onSend', async (_request, reply) => {
    if (isClosing()) reply.header('connection', 'close')
  })
  await allowBrowserCallers(app)

  if (metrics) {
    const { store, relay, memoryWatch } = services
    mountMetrics(app, {
      activeSessions: () => store.countActive(),
      openRelays: () => relay.openConnections,
      memoryKills: () => memoryWatch.total,
    })
  }
  mountServiceRoutes(app, services.health)
  await mountDocumentRoutes(app)
  mountDiscovery(app, { access: services.access, machines: services.machines, publicUrl })
  services.relay.attach(app.server)
  await mountOperations(app, { ...services, callerOf })

  const mount = mountForCallers(app, callerOf)
  mountSessionRoutes(mount, { ...services, publicUrl })
  mountProfileRoutes(mount, services.profiles)
  mountProxyRoutes(mount, services)
  mountSessionExtensionRoutes(mount, services)
  mountExtensionRoutes(mount, services)
  return app
}

/** The official clients also run in web pages of any origin. Keys are bearer tokens, so no cookie is at risk. */
async function allowBrowserCallers(app: FastifyInstance): Promise<void> {
  const exposed = [
    'X-Limit',
    'X-Offset',
    'X-Has-More',
    'X-Next-Offset',
    'X-Sse-Content-Type',
    'Retry-After',
    'X-Should-Retry',
    'X-Request-Id',
  ]
  // Without a list of headers the plugin allows those that the browser asks for: the SDK's set grows with its versions.
  await app.register(cors, {
    origin: '*',
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    exposedHeaders: exposed,
    maxAge: 86_400,
    strictPreflight: false,
  })
}

/** Answers what was not even HTTP in the form of every other error. */
function refuseMalformedRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const refusal =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
      ? new BerthError('request_timeout')
      : new BerthError('bad_request', { reason: 'The request is not valid HTTP.' })
  endWithAnswer(socket, refusal.status, errorBody(refusal))
}
