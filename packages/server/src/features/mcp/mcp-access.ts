import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { BerthError } from '@berth/contract/errors.ts'
import { toBerthError } from '@berth/runtime/http/error-reply.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { OrganizationCaller } from '../../access/caller.ts'
import { oauthScopes } from '../../access/oauth/oauth-scopes.ts'
import { publicUrlOf } from '../../access/public-url.ts'

const metadataPath = '/.well-known/oauth-protected-resource'

interface ResourceOptions {
  readonly issuer: string | undefined
  readonly publicUrl: string | undefined
}

/** Where clients find the issuer (RFC 9728). The path without `/mcp` is for clients that only try the root. */
export function mountResourceMetadata(app: FastifyInstance, { issuer, publicUrl }: ResourceOptions): void {
  for (const url of [metadataPath, `${metadataPath}/mcp`]) {
    app.get(url, ({ raw }) => ({
      resource: `${publicUrlOf(raw, publicUrl)}/mcp`,
      authorization_servers: [issuer],
      scopes_supported: oauthScopes,
      bearer_methods_supported: ['header'],
      resource_name: 'berth',
    }))
  }
}

/** Authenticates the client. The headers of an error response name the required token and where to get it. */
export async function admitMcpClient(
  request: FastifyRequest,
  reply: FastifyReply,
  {
    callerOf,
    issuer,
    publicUrl,
  }: ResourceOptions & { callerOf(headers: IncomingHttpHeaders): Promise<OrganizationCaller> },
): Promise<OrganizationCaller> {
  const challenge = (error?: string) => {
    const parts = ['Bearer realm="berth"']
    if (error !== undefined) parts.push(`error="${error}"`)
    if (issuer !== undefined)
      parts.push(`resource_metadata="${publicUrlOf(request.raw, publicUrl)}${metadataPath}/mcp"`)
    reply.header('www-authenticate', parts.join(', '))
  }
  const caller = await callerOf(request.headers).catch((error: unknown) => {
    const known = toBerthError(error)
    if (known.status === 401) challenge(request.headers.authorization === undefined ? undefined : 'invalid_token')
    throw known
  })
  if (caller.token?.scopes.size === 0) {
    challenge('insufficient_scope')
    throw new BerthError('insufficient_scope', { scopes: oauthScopes.join(' ') })
  }
  return caller
}

/**
 * Rejects pages that reach berth under their own host name (DNS rebinding), because for them requests to berth are
 * same-origin. Pages of any other origin may call, as with the API.
 */
export function refuseRebound({ headers, raw }: FastifyRequest, publicUrl: string | undefined): void {
  const { origin } = headers
  if (origin === undefined || !isSameHost(origin, raw) || isOwnHost(raw, publicUrl)) return
  const reason = 'Pages must use an address of berth, or the host name of BERTH_PUBLIC_URL, for /mcp.'
  throw new BerthError('forbidden', { reason })
}

function isSameHost(origin: string, { headers }: IncomingMessage): boolean {
  return URL.parse(origin)?.host === URL.parse(`http://${headers.host}`)?.host
}

function isOwnHost({ headers }: IncomingMessage, publicUrl: string | undefined): boolean {
  const name = URL.parse(`http://${headers.host}`)?.hostname.replaceAll(/^\[|\]$/g, '')
  if (name === undefined) return false
  return isIP(name) > 0 || name === 'localhost' || (publicUrl !== undefined && name === new URL(publicUrl).hostname)
}
