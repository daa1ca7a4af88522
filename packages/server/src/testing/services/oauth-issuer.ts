import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'
import Provider from 'oidc-provider'
import { oauthScopes } from '../../access/oauth/oauth-scopes.ts'

export const issuerSubject = 'person@example.test'

/**
 * A real OAuth issuer on loopback whose user accepts everything: dynamic registration, PKCE, and JWT access tokens for
 * the resource that the client names.
 */
export class OAuthIssuer {
  readonly url: string
  /** Additional claims of its tokens. */
  claims: Readonly<Record<string, string>> = {}
  readonly #server: Server
  /** The last key signs. */
  readonly #keys: { readonly id: string; readonly privateKey: CryptoKey; readonly jwk: JWK }[] = []
  /** Requests by path. */
  readonly requests: string[] = []

  private constructor(server: Server) {
    this.#server = server
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  static async open(): Promise<OAuthIssuer> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const issuer = new OAuthIssuer(server)
    await issuer.rotate()
    return issuer
  }

  /** Replaces its keys by a new one, with a provider that has lost all other state. */
  async rotate(): Promise<void> {
    const { privateKey } = await generateKeyPair('RS256', { extractable: true })
    const id = `key-${this.#keys.length + 1}`
    const jwk = { ...(await exportJWK(privateKey)), kid: id, alg: 'RS256', use: 'sig' }
    this.#keys.push({ id, privateKey, jwk })
    const answer = this.#provider(jwk).callback()
    this.#server.removeAllListeners('request')
    this.#server.on('request', (request: IncomingMessage, response) => {
      this.requests.push(request.url ?? '')
      void answer(request, response)
    })
  }

  /** Signs a token like the issuer, with other claims or an older key. */
  async sign(claims: JWTPayload, { keyNumber = this.#keys.length, expiresIn = '5m' } = {}): Promise<string> {
    const { id, privateKey } = this.#keys[keyNumber - 1] ?? { id: '', privateKey: new Uint8Array() }
    return new SignJWT({ iss: this.url, sub: issuerSubject, ...this.claims, ...claims })
      .setProtectedHeader({ alg: 'RS256', kid: id, typ: 'at+jwt' })
      .setIssuedAt()
      .setExpirationTime(expiresIn)
      .sign(privateKey)
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #provider(jwk: JWK): Provider {
    const provider = new Provider(this.url, {
      jwks: { keys: [jwk as never] },
      scopes: ['openid', ...oauthScopes],
      pkce: { required: () => true },
      features: {
        registration: { enabled: true },
        devInteractions: { enabled: false },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: (_context, resource) => ({
            scope: oauthScopes.join(' '),
            audience: resource,
            accessTokenFormat: 'jwt',
            accessTokenTTL: 300,
          }),
        },
      },
      extraTokenClaims: () => this.claims,
      interactions: { url: (_context, interaction) => `/agree/${interaction.uid}` },
      findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
      cookies: { keys: ['only for tests'] },
    })
    provider.use(async (context, next) => {
      if (!context.path.startsWith('/agree/')) return next()
      const { prompt, params, session } = await provider.interactionDetails(context.req, context.res)
      if (prompt.name === 'login') {
        await provider.interactionFinished(context.req, context.res, { login: { accountId: issuerSubject } })
      } else {
        const { client_id: clientId, resource, scope } = params as Record<string, string>
        const grant = new provider.Grant({ accountId: session?.accountId, clientId })
        if (scope) grant.addOIDCScope(scope)
        if (resource && scope) grant.addResourceScope(resource, scope)
        await provider.interactionFinished(context.req, context.res, { consent: { grantId: await grant.save() } })
      }
      context.respond = false
    })
    return provider
  }
}

/** Follows the redirects of a user's browser from the page of the issuer to the address of the client. */
export async function agree(authorizationUrl: URL, redirectUrl: string): Promise<URL> {
  const cookies = new Map<string, string>()
  let next = authorizationUrl
  while (!next.href.startsWith(redirectUrl)) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(next, { redirect: 'manual', headers: { cookie } })
    for (const each of response.headers.getSetCookie()) {
      const [pair = ''] = each.split(';')
      const at = pair.indexOf('=')
      cookies.set(pair.slice(0, at), pair.slice(at + 1))
    }
    const location = response.headers.get('location')
    if (!location) throw new Error(`${next.href}: ${response.status} ${await response.text()}`)
    next = new URL(location, next)
  }
  return next
}
