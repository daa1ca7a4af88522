import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { errorsOf } from '@berth/contract/endpoint.ts'
import { publicEndpoints } from '@berth/contract/index.ts'
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose'
import { type OAuthScope, oauthScopes, scopesFor } from '../../access/oauth/oauth-scopes.ts'
import { TestServer } from '../../testing/server-test.ts'
import { agree, issuerSubject, OAuthIssuer } from '../../testing/services/oauth-issuer.ts'

/* A real issuer, and the official MCP client, which registers, logs in with PKCE, and calls tools. */

const redirectUrl = 'http://127.0.0.1:9/callback'
const organizationClaim = 'https://berth.test/organization'

const issuer = await OAuthIssuer.open()
const server = await TestServer.open({
  egressAllow: [new URL(issuer.url).host],
  oauth: (url) => ({
    issuer: issuer.url,
    audience: `${url}/mcp`,
    organization: { claim: organizationClaim },
    projectClaim: undefined,
  }),
})
after(async () => {
  await server.close()
  await issuer.close()
})

const owner = await server.project()
issuer.claims = { [organizationClaim]: owner.organizationId, email: 'person@mail.test' }
const audience = `${server.url}/mcp`
const allScopes = oauthScopes.join(' ')

/** The state that a client stores between the issuer's page and its own. */
class Login implements OAuthClientProvider {
  readonly redirectUrl = redirectUrl
  readonly clientMetadata = {
    client_name: 'test',
    redirect_uris: [redirectUrl],
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code'],
    response_types: ['code'],
  }
  page: URL | undefined
  registration: OAuthClientInformationMixed | undefined
  saved: OAuthTokens | undefined
  verifier = ''

  clientInformation() {
    return this.registration
  }
  saveClientInformation(information: OAuthClientInformationMixed) {
    this.registration = information
  }
  tokens() {
    return this.saved
  }
  saveTokens(tokens: OAuthTokens) {
    this.saved = tokens
  }
  redirectToAuthorization(url: URL) {
    this.page = url
  }
  saveCodeVerifier(verifier: string) {
    this.verifier = verifier
  }
  codeVerifier() {
    return this.verifier
  }
}

async function contextOf(token: string): Promise<number> {
  const { status } = await owner.call('GET', '/auth/context', undefined, { key: token })
  return status
}

test('the official client finds the issuer, registers, logs in with PKCE, and calls tools as the user', async () => {
  const login = new Login()
  const open = () => new StreamableHTTPClientTransport(new URL(audience), { authProvider: login })
  const first = open()
  await assert.rejects(new Client({ name: 'test', version: '1' }).connect(first as never), UnauthorizedError)

  const page = login.page ?? assert.fail('the client opens no page')
  const returned = await agree(page, redirectUrl)
  await first.finishAuth(returned.searchParams.get('code') ?? '')
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(open() as never)
  const created = (await client.callTool({
    name: 'manage_browsers',
    arguments: { action: 'create', headless: true },
  })) as CallToolResult
  await client.close()

  assert.equal(page.searchParams.get('code_challenge_method'), 'S256')
  assert.equal(page.searchParams.get('resource'), audience)
  assert.ok(issuer.requests.includes('/reg'), 'dynamic registration')
  assert.notEqual(created.isError, true, JSON.stringify(created.content))
  const now = server.clock.now().getTime()
  const [start = '', end = ''] = [now - 3_600_000, now + 3_600_000].map((each) => new Date(each).toISOString())
  const period = new URLSearchParams({ start, end, method: 'POST' })
  const { body: entries } = await owner.call<
    { auth_strategy: string; user_id: string; email: string; route: string }[]
  >('GET', `/audit-logs?${period}`)
  const entry = entries.find(({ route }) => route === '/browsers')
  assert.deepEqual([entry?.auth_strategy, entry?.user_id, entry?.email], ['oauth', issuerSubject, 'person@mail.test'])
})

test('the context contains the user', async () => {
  const token = await issuer.sign({ aud: audience, scope: allScopes })

  const { body } = await owner.call<object>('GET', '/auth/context', undefined, { key: token })

  assert.deepEqual(body, {
    principal: { type: 'user', id: issuerSubject },
    organization: { id: owner.organizationId },
    authentication: { method: 'jwt', source: 'oauth', credential_id: null },
    authorization: { credential_scope: { project_id: null }, effective_scope: { project_id: null } },
  })
})

test('reports the issuer to clients, and why their token is rejected', async () => {
  for (const path of ['', '/mcp']) {
    const metadata = await fetch(`${server.url}/.well-known/oauth-protected-resource${path}`)
    assert.deepEqual(await metadata.json(), {
      resource: audience,
      authorization_servers: [issuer.url],
      scopes_supported: oauthScopes,
      bearer_methods_supported: ['header'],
      resource_name: 'berth',
    })
  }
  const challengeOf = async (token?: string) => {
    const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
    const response = await fetch(audience, { method: 'POST', headers, body: '{}' })
    return [response.status, response.headers.get('www-authenticate')]
  }
  const where = `resource_metadata="${server.url}/.well-known/oauth-protected-resource/mcp"`

  assert.deepEqual(await challengeOf(), [401, `Bearer realm="berth", ${where}`])
  assert.deepEqual(await challengeOf('sk_unknown'), [401, `Bearer realm="berth", error="invalid_token", ${where}`])
  const empty = await issuer.sign({ aud: audience, scope: 'openid' })
  assert.deepEqual(await challengeOf(empty), [403, `Bearer realm="berth", error="insufficient_scope", ${where}`])
})

const stranger = await OAuthIssuer.open()
after(() => stranger.close())
const forged = await generateKeyPair('RS256')
const publicJwk = await exportJWK(forged.publicKey)
const claims = { iss: issuer.url, sub: issuerSubject, aud: audience, scope: allScopes, ...issuer.claims }
const soon = '5m'
const refused: readonly (readonly [string, () => Promise<string> | string, RegExp])[] = [
  ['of another audience', () => issuer.sign({ aud: 'https://other.test/mcp', scope: allScopes }), /claim aud/],
  ['of another issuer', () => stranger.sign({ ...issuer.claims, aud: audience, scope: allScopes }), /another issuer/],
  ['that a stranger signed', () => stranger.sign(claims), /not signed by the issuer/],
  ['that has expired', () => issuer.sign({ aud: audience }, { expiresIn: '-1m' }), /expired/],
  ['without an algorithm', () => new UnsecuredJWT(claims).setExpirationTime(soon).encode(), /alg|signed/],
  [
    'signed with the public key as a secret',
    () =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: 'HS256', kid: 'key-1' })
        .setExpirationTime(soon)
        .sign(new TextEncoder().encode(JSON.stringify(publicJwk))),
    /alg/,
  ],
  [
    'that carries its own key',
    () =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: 'RS256', jwk: publicJwk, kid: 'key-1' })
        .setExpirationTime(soon)
        .sign(forged.privateKey),
    /not signed/,
  ],
  ['of nobody', () => issuer.sign({ aud: audience, sub: '' }), /subject/],
  ['of a subject with a line break', () => issuer.sign({ aud: audience, sub: 'a\nb' }), /subject/],
  ['without an organization', () => issuer.sign({ aud: audience, [organizationClaim]: undefined }), /must be an id/],
  ['of no organization', () => issuer.sign({ aud: audience, [organizationClaim]: owner.id }), /does not exist/],
  [
    'with a list of organizations',
    () => issuer.sign({ aud: audience, [organizationClaim]: [owner.organizationId] }),
    /id/,
  ],
]
for (const [what, make, reason] of refused) {
  test(`a token ${what} is rejected`, async () => {
    const { status, body } = await owner.call<{ message: string }>('GET', '/browsers', undefined, { key: await make() })

    assert.equal(status, 401)
    assert.match(body.message, reason)
  })
}

test('a token without a scope that an operation needs is rejected, in every operation', async () => {
  const operations = publicEndpoints.filter(({ access }) => access === 'project' || access === 'organization')
  const without = new Map<OAuthScope, string>()
  for (const scope of oauthScopes) {
    const others = oauthScopes.filter((other) => other !== scope)
    without.set(scope, await issuer.sign({ aud: audience, scope: `openid ${others.join(' ')}` }))
  }

  for (const endpoint of operations) {
    const { method, path, operationId } = endpoint
    const needed = scopesFor(endpoint) ?? assert.fail(`${operationId}: no scope holds the tag ${endpoint.tag}`)
    assert.ok(errorsOf(endpoint).includes('insufficient_scope'), operationId)
    const filled = path.replaceAll(/\{\w+\}/g, 'none')
    for (const scope of needed) {
      const headers = { authorization: `Bearer ${without.get(scope)}` }
      const response = await fetch(`${server.url}${filled}`, { method, headers })
      await response.body?.cancel()
      assert.equal(response.status, 403, `${operationId} without ${scope}`)
      assert.match(response.headers.get('www-authenticate') ?? '', /insufficient_scope/)
    }
  }
})

test('a token gives no access to the dashboard or to the address of a session', async () => {
  const session = await owner.session()
  const key = await issuer.sign({ aud: audience, scope: allScopes })

  const link = await owner.call('POST', '/dashboard/links', {}, { key })
  const signIn = await owner.call('POST', '/dashboard/session', { api_key: key })
  const below = await owner.call('POST', `/s/${session.session_id}/computer/screenshot`, {}, { key })

  assert.ok([401, 403, 404].includes(link.status), String(link.status))
  assert.equal(signIn.status, 401)
  assert.equal(below.status, 401)
})

test('a new key of the issuer is found, and a removed one is not accepted', async () => {
  const old = await issuer.sign({ aud: audience, scope: allScopes })
  assert.equal(await contextOf(old), 200)
  await issuer.rotate()
  const isAccepted = async (options?: { keyNumber: number }) =>
    (await contextOf(await issuer.sign({ aud: audience, scope: allScopes }, options))) === 200
  // berth waits some seconds before it requests the issuer's keys again.
  const deadline = performance.now() + 30_000
  while (!(await isAccepted())) {
    assert.ok(performance.now() < deadline, 'the new key is not found')
    await delay(100)
  }

  assert.equal(await isAccepted({ keyNumber: 1 }), false)
})
