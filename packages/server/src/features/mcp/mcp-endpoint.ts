import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Toolset } from '@berth/mcp/toolsets.ts'
import { toBerthError } from '@berth/runtime/http/error-reply.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import packageJson from '../../../package.json' with { type: 'json' }
import type { OrganizationCaller } from '../../access/caller.ts'
import { readBearer } from '../../access/session-credentials.ts'

const docsFolder = join(import.meta.dirname, '../../../../../docs')
const methods = 'POST, OPTIONS'

export interface McpEndpointOptions {
  readonly callerOf: (headers: IncomingHttpHeaders) => Promise<OrganizationCaller>
  /** Toolsets that are left out. */
  readonly disabled: ReadonlySet<Toolset>
}

/**
 * Serves MCP over Streamable HTTP, without state, so that each request may come to another server. Tools call the API of
 * this server with the caller's key, as any client does.
 */
export function mountMcp(app: FastifyInstance, { callerOf, disabled }: McpEndpointOptions): void {
  // Most servers are never asked: the library is loaded with the first request.
  let loading: Promise<McpLibrary> | undefined

  app.post('/mcp', async (request, reply) => {
    await admit(request, reply)
    loading ??= loadLibrary()
    const { createMcpServer, docs, WebStandardStreamableHTTPServerTransport } = await loading
    const gone = new AbortController()
    void once(reply.raw, 'close').then(() => gone.abort())
    const server = createMcpServer({
      url: ownAddress(app),
      apiKey: readBearer(request.headers.authorization) ?? '',
      project: headerText(request, 'x-kernel-project') ?? headerText(request, 'x-kernel-project-id'),
      signal: gone.signal,
      version: packageJson.version,
      docs,
      disabled,
    })
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
    await server.connect(transport)
    try {
      const headers = new Headers({ 'content-type': 'application/json', accept: 'application/json, text/event-stream' })
      const version = headerText(request, 'mcp-protocol-version')
      if (version !== undefined) headers.set('mcp-protocol-version', version)
      const asked = new Request('http://berth/mcp', { method: 'POST', headers })
      const response = await transport.handleRequest(asked, { parsedBody: request.body })
      const text = await response.text()
      return reply
        .code(response.status)
        .headers(Object.fromEntries(response.headers))
        .send(text || undefined)
    } finally {
      await server.close()
    }
  })

  // There is no state: no stream of the server's own messages, and no session to delete.
  app.route({
    method: ['GET', 'DELETE'],
    url: '/mcp',
    handler: async (request, reply) => {
      await admit(request, reply)
      return reply
        .code(405)
        .header('allow', methods)
        .send({ code: 'method_not_allowed', message: `Use ${methods}.` })
    },
  })

  /** The header tells a client that it needs a token. */
  async function admit(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await callerOf(request.headers).catch((error: unknown) => {
      const known = toBerthError(error)
      if (known.status === 401) reply.header('www-authenticate', 'Bearer realm="berth"')
      throw known
    })
  }
}

type McpLibrary = Awaited<ReturnType<typeof loadLibrary>>

async function loadLibrary() {
  const [{ createMcpServer }, { DocsSearch }, { WebStandardStreamableHTTPServerTransport }] = await Promise.all([
    import('@berth/mcp/create-mcp-server.ts'),
    import('@berth/mcp/docs-search.ts'),
    import('@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'),
  ])
  return { createMcpServer, docs: new DocsSearch(docsFolder), WebStandardStreamableHTTPServerTransport }
}

/** Where this server listens, from itself. */
function ownAddress(app: FastifyInstance): string {
  const { address, port, family } = app.server.address() as AddressInfo
  if (address === '0.0.0.0') return `http://127.0.0.1:${port}`
  if (address === '::') return `http://[::1]:${port}`
  return family === 'IPv6' ? `http://[${address}]:${port}` : `http://${address}:${port}`
}

function headerText({ headers }: FastifyRequest, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' && value ? value : undefined
}
