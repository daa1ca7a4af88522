import { randomUUID } from 'node:crypto'
import { type IncomingHttpHeaders, maxHeaderSize, type Server } from 'node:http'
import type { Socket } from 'node:net'
import { BerthError } from '@berth/contract/errors.ts'
import type { Toolset } from '@berth/mcp/toolsets.ts'
import { errorBody, pathOf, replyWithErrors, sendError, toBerthError } from '@berth/runtime/http/error-reply.ts'
import { acceptJsonBodies } from '@berth/runtime/http/json-body.ts'
import { endWithResponse } from '@berth/runtime/http/raw-response.ts'
import cors from '@fastify/cors'
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { authenticate, inProject } from './access/authenticate.ts'
import { receiveDashboardRequest } from './access/dashboard-requests.ts'
import { mountStreamsWithCallers, mountWithCallers } from './access/mount-for-callers.ts'
import { requireScopes } from './access/oauth/oauth-scopes.ts'
import { readBearer, readSessionCredentials } from './access/session-credentials.ts'
import { mountDevToolsFrontend } from './agent-link/discovery/devtools-frontend.ts'
import { mountDiscovery } from './agent-link/discovery/discovery.ts'
import { mountLiveViewPage } from './agent-link/live-view/live-view-page.ts'
import { mountOperations } from './agent-link/operations.ts'
import { mountWebDriver } from './agent-link/relay/webdriver.ts'
import { mountApiKeyRoutes } from './features/api-keys/api-key-routes.ts'
import { mountAppRoutes } from './features/apps/app-routes.ts'
import { mountAuditRoutes } from './features/audit/audit-routes.ts'
import { mountExportDestinationRoutes } from './features/audit-export/export-destination-routes.ts'
import { mountAuthRoutes } from './features/auth/auth-routes.ts'
import { mountConfigRegistryRoutes } from './features/config-registry/config-registry-routes.ts'
import { mountCredentialProviderRoutes } from './features/credential-providers/credential-provider-routes.ts'
import { mountCredentialRoutes } from './features/credentials/credential-routes.ts'
import { mountDashboardPages } from './features/dashboard/dashboard-pages.ts'
import { mountDashboardRoutes } from './features/dashboard/dashboard-routes.ts'
import { mountDocumentationPages } from './features/documentation/documentation-pages.ts'
import { mountExtensionRoutes } from './features/extensions/extension-routes.ts'
import { mountLimitRoutes } from './features/limits/limit-routes.ts'
import { mountConnectionRoutes } from './features/managed-auth/connection-routes.ts'
import { mountHostedPage } from './features/managed-auth/hosted/hosted-page.ts'
import { mountMcp } from './features/mcp/mcp-endpoint.ts'
import { mountOtlpDestinationRoutes } from './features/otlp/otlp-destination-routes.ts'
import { mountProfileRoutes } from './features/profiles/profile-routes.ts'
import { mountProjectRoutes } from './features/projects/project-routes.ts'
import { mountProxyRoutes } from './features/proxies/proxy-routes.ts'
import { mountSearchRoutes } from './features/search/search-routes.ts'
import { mountMetrics } from './features/service/metrics.ts'
import { mountServiceRoutes } from './features/service/service-routes.ts'
import { mountDownloadRoutes } from './features/sessions/downloads/download-routes.ts'
import { mountSessionExtensionRoutes } from './features/sessions/launch-inputs/session-extension-routes.ts'
import { mountPoolRoutes } from './features/sessions/pools/pool-routes.ts'
import { sessionRoot } from './features/sessions/records/session-urls.ts'
import { mountReplayPage } from './features/sessions/replays/replay-page.ts'
import { mountReplayRoutes } from './features/sessions/replays/replay-routes.ts'
import { mountSessionRoutes } from './features/sessions/session-routes.ts'
import { mountTelemetryRoutes } from './features/telemetry/telemetry-routes.ts'
import { mountCollectionRoutes } from './features/vaults/collection/collection-routes.ts'
import { mountItemRoutes } from './features/vaults/items/item-routes.ts'
import { mountProviderConfigRoutes } from './features/vaults/provider-configs/provider-config-routes.ts'
import { mountVaultRoutes } from './features/vaults/vault-routes.ts'
import { mountWebhookRoutes } from './features/webhooks/webhook-routes.ts'
import { type ConnectionLimits, defaultConnectionLimits } from './ingress/connection-limits.ts'
import { createIngressServer } from './ingress/ingress-server.ts'
import { restrictToOwnSession } from './own-session/own-session-guard.ts'
import type { Services } from './services.ts'

/** A Chrome policy may take 5 MiB, and the rest of a body is small. */
const bodyLimitBytes = 8 * 1024 * 1024
/** Names have at most 255 characters, and percent-encoding may triple them. */
const maxPathParameterLength = 1024
const headersLimitMilliseconds = 20_000
/** Longer than the timeouts of load balancers, which must be the ones to close idle connections. */
const keepAliveMilliseconds = 72_000

const belowSession = new RegExp(`^${sessionRoot}/([^/]+)`)

export interface AppOptions {
  readonly publicUrl: string | undefined
  readonly metrics: boolean
  readonly connectionLimits?: ConnectionLimits
  /** Whether requests are rejected. */
  readonly isClosing: () => boolean
  /** Whether the server is about to stop. When absent, when requests are rejected. */
  readonly isLeaving?: () => boolean
  /** Toolsets of MCP that are not offered. */
  readonly disabledToolsets?: ReadonlySet<Toolset>
}

/** Mounts every route of the server. */
export async function createApp(
  services: Services,
  {
    publicUrl,
    metrics,
    connectionLimits = defaultConnectionLimits,
    isClosing,
    isLeaving = isClosing,
    disabledToolsets = new Set(),
  }: AppOptions,
): Promise<FastifyInstance> {
  const http = {
    headersTimeout: headersLimitMilliseconds,
    keepAliveTimeout: keepAliveMilliseconds,
    // The limit depends on the body and is enforced where it is read: an upload may take long, a JSON body may not.
    requestTimeout: 0,
    requireHostHeader: false,
  }
  const { forwarding } = services
  const app = Fastify<Server>({
    bodyLimit: bodyLimitBytes,
    routerOptions: { maxParamLength: maxPathParameterLength, ignoreTrailingSlash: true },
    frameworkErrors: (error, _request, reply) => sendError(reply, toBerthError(error)),
    clientErrorHandler: refuseMalformedRequest,
    return503OnClosing: false,
    serverFactory: (onRequest) =>
      createIngressServer({
        http,
        limits: connectionLimits,
        onRequest: (request, response) => {
          services.openRequests.add(response)
          forwarding.receive(request)
          receiveDashboardRequest(request)
          onRequest(request, response)
        },
        onUpgrade: forwarding.upgrades(services.relay.take),
      }),
    genReqId: () => randomUUID(),
  })
  app.decorateRequest('caller', undefined)
  services.requestAudit.attach(app)
  acceptJsonBodies(app)
  const organizationCallerOf = (headers: IncomingHttpHeaders) => authenticate(headers, services)
  const callerOf = async (headers: IncomingHttpHeaders) => inProject(await organizationCallerOf(headers))
  const admitSomebody = (request: FastifyRequest) => {
    const [, session] = belowSession.exec(pathOf(request.url)) ?? []
    return session === undefined
      ? organizationCallerOf(request.headers)
      : services.access.admit(readSessionCredentials(request), session)
  }
  replyWithErrors(app, services.logger, { admit: admitSomebody })
  app.addHook('onRequest', async (request) => {
    if (isClosing()) throw new BerthError('shutting_down')
    restrictToOwnSession(request.raw)
  })
  // After the hooks that authenticate the caller, and before its body is read.
  app.addHook('preParsing', async (request, reply) => requireScopes(request, reply))
  // Keep-alive would prevent the server from stopping after the requests in progress.
  app.addHook('onSend', async (_request, reply) => {
    if (isLeaving()) reply.header('connection', 'close')
  })
  await allowBrowserCallers(app)
  forwarding.attach(app)

  if (metrics) {
    const { store, relay, memoryWatch } = services
    mountMetrics(app, {
      activeSessions: () => store.countActive(),
      openRelays: () => relay.openConnections + forwarding.openConnections,
      frozenSessions: () => services.machines.countFrozen(),
      returnedBytes: () => services.machines.returnedBytes,
      reserve: services.reserve,
      memoryKills: () => memoryWatch.total,
    })
  }
  mountServiceRoutes(app, services.health, isLeaving)
  mountDocumentationPages(app, { publicUrl })
  mountDashboardPages(app, { publicUrl })
  mountCollectionRoutes(app, services)
  mountHostedPage(app, { publicUrl })
  mountDiscovery(app, { access: services.access, machines: services.machines, publicUrl })
  mountDevToolsFrontend(app, { ...services, publicUrl })
  mountLiveViewPage(app, { access: services.access, publicUrl })
  await mountWebDriver(app, { ...services, publicUrl })
  await mountOperations(app, { ...services, callerOf })

  const mount = mountWithCallers(app, { access: 'project', callerOf, limits: services.limits })
  mountSessionRoutes(mount, { ...services, publicUrl })
  mountPoolRoutes(mount, { ...services, pools: services.browserPools, publicUrl })
  mountReplayRoutes(mount, { ...services, publicUrl })
  mountReplayPage(app, services)
  mountDownloadRoutes(mount, services.downloads)
  mountProfileRoutes(mount, services.profiles)
  mountProxyRoutes(mount, services)
  mountSessionExtensionRoutes(mount, services)
  mountExtensionRoutes(mount, services)
  mountCredentialRoutes(mount, services)
  mountVaultRoutes(mount, services)
  mountItemRoutes(mount, { ...services, publicUrl })
  mountConfigRegistryRoutes(mount, services)
  mountSearchRoutes(mount, services)
  mountWebhookRoutes(mount, services)
  mountTelemetryRoutes(app, mount, { ...services, callerOf, sessionRoot })
  mountAppRoutes(mount, mountStreamsWithCallers(app, callerOf), { ...services, publicUrl })

  const callerWithHandoff = async (headers: IncomingHttpHeaders) =>
    services.oauth?.isOfIssuer(readBearer(headers.authorization))
      ? callerOf(headers)
      : ((await services.authFlows.callerOf(headers)) ?? callerOf(headers))
  mountConnectionRoutes(
    {
      app,
      mount,
      mountForHandoffs: mountWithCallers(app, {
        access: 'project',
        callerOf: callerWithHandoff,
        limits: services.limits,
      }),
      mountStreamForHandoffs: mountStreamsWithCallers(app, callerWithHandoff, { nameOf: ({ event }) => event }),
    },
    { ...services, publicUrl },
  )

  const mountForOrganizations = mountWithCallers(app, {
    access: 'organization',
    callerOf: organizationCallerOf,
    limits: services.limits,
  })
  mountAuthRoutes(mountForOrganizations)
  mountDashboardRoutes(app, mount, mountForOrganizations, mountStreamsWithCallers(app, callerOf), {
    ...services,
    publicUrl,
  })
  mountProjectRoutes(mountForOrganizations, services)
  mountApiKeyRoutes(mountForOrganizations, services)
  mountCredentialProviderRoutes(mountForOrganizations, services)
  mountProviderConfigRoutes(mountForOrganizations, services)
  mountExportDestinationRoutes(mountForOrganizations, services)
  mountOtlpDestinationRoutes(mountForOrganizations, services)
  mountAuditRoutes(mountForOrganizations, services)
  mountLimitRoutes(mountForOrganizations, services)
  mountMcp(app, {
    callerOf: organizationCallerOf,
    disabled: disabledToolsets,
    issuer: services.oauth?.issuer,
    publicUrl,
  })
  return app
}

/** The official clients also run in web pages of any origin. Keys are bearer tokens, so no cookie is at risk. */
async function allowBrowserCallers(app: FastifyInstance): Promise<void> {
  const exposed = [
    'X-Limit',
    'X-Offset',
    'X-Has-More',
    'X-Next-Offset',
    'X-Next-Page-Token',
    'X-Next-Cursor',
    'X-Row-Count',
    'X-Content-Sha256',
    'X-Sse-Content-Type',
    'Retry-After',
    'X-RateLimit-Limit',
    'X-RateLimit-Remaining',
    'X-Should-Retry',
    'X-Request-Id',
    'WWW-Authenticate',
  ]
  // Without a list of headers the plugin permits the requested ones: the SDK adds headers with its versions.
  await app.register(cors, {
    origin: '*',
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    exposedHeaders: exposed,
    maxAge: 86_400,
    strictPreflight: false,
  })
}

/** Rejects malformed HTTP in the format of every other error. */
function refuseMalformedRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const reason =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? `The address and the headers must have at most ${maxHeaderSize} bytes together.`
      : 'The request is not valid HTTP.'
  const refusal =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
      ? new BerthError('request_timeout')
      : new BerthError('bad_request', { reason })
  endWithResponse(socket, refusal.status, errorBody(refusal))
}
