import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import type { OrganizationId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Toolset } from '@berth/mcp/toolsets.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import packageJson from '../../../package.json' with { type: 'json' }
import type { OrganizationCaller } from '../../access/caller.ts'
import { readBearer } from '../../access/session-credentials.ts'
import { admitMcpClient, mountResourceMetadata, refuseRebound } from './mcp-access.ts'

const docsFolder = join(import.meta.dirname, '../../../../../docs')
const methods = 'POST, OPTIONS'
/** The limit of one organization: each call is a connection to this server and may last for minutes. */
const maxCallsAtOnce = 64
/** Older clients send several messages in one request. */
const maxMessages = 20
const Progressing = z.object({
  params: z.object({ _meta: z.object({ progressToken: z.union([z.string(), z.number()]) }) }),
})

export interface McpEndpointOptions {
  readonly callerOf: (headers: IncomingHttpHeaders) => Promise<OrganizationCaller>
  /** Toolsets that are not offered. */
  readonly disabled: ReadonlySet<Toolset>
  /** The OAuth issuer whose tokens `callerOf` accepts, if there is one. */
  readonly issuer: string | undefined
  readonly publicUrl: string | undefined
}

/**
 * Serves MCP over Streamable HTTP, without state, so that any server can handle a request. Tools call the API of this
 * server with the caller's key, like any client.
 */
export function mountMcp(app: FastifyInstance, { callerOf, disabled, issuer, publicUrl }: McpEndpointOptions): void {
  // Loaded with the first request, because most servers never get one.
  let loading: Promise<McpLibrary> | undefined

  const running = new Map<OrganizationId, number>()
  const admit = (request: FastifyRequest, reply: FastifyReply) => {
    refuseRebound(request, publicUrl)
    return admitMcpClient(request, reply, { callerOf, issuer, publicUrl })
  }
  if (issuer !== undefined) mountResourceMetadata(app, { issuer, publicUrl })

  app.post('/mcp', async (request, reply) => {
    const { organizationId } = await admit(request, reply)
    if (Array.isArray(request.body) && request.body.length > maxMessages) {
      throw new BerthError('bad_request', { reason: `The body must have at most ${maxMessages} messages.` })
    }
    const others = running.get(organizationId) ?? 0
    if (others >= maxCallsAtOnce) throw new BerthError('too_many_tool_calls', { limit: maxCallsAtOnce })
    running.set(organizationId, others + 1)
    try {
      return await answer(request, reply)
    } finally {
      const left = (running.get(organizationId) ?? 1) - 1
      if (left > 0) running.set(organizationId, left)
      else running.delete(organizationId)
    }
  })

  async function answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
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
    const streams = reportsProgress(request.body)
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: !streams })
    await server.connect(transport)
    try {
      const headers = new Headers({ 'content-type': 'application/json', accept: 'application/json, text/event-stream' })
      const version = headerText(request, 'mcp-protocol-version')
      if (version !== undefined) headers.set('mcp-protocol-version', version)
      const asked = new Request('http://berth/mcp', { method: 'POST', headers })
      const response = await transport.handleRequest(asked, { parsedBody: request.body })
      reply.code(response.status).headers(Object.fromEntries(response.headers))
      if (!streams || !response.body) return await reply.send((await response.text()) || undefined)
      await reply.send(Readable.fromWeb(response.body as ReadableStream))
      await finished(reply.raw, { cleanup: true }).catch(() => {}) // The client may disconnect before the end.
      return reply
    } finally {
      await server.close()
    }
  }

  // There is no state: no stream of server messages, and no session to delete.
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

/** Whether a message requests progress, which only a stream can deliver before the response. */
function reportsProgress(body: unknown): boolean {
  const messages: unknown[] = Array.isArray(body) ? body : [body]
  return messages.some((message) => Progressing.safeParse(message).success)
}

/** The address of this server for its own requests. */
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
