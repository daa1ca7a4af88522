import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newId } from '@berth/contract/common/ids.ts'
import { TestServer } from '../../testing/server-test.ts'
import { OAuthIssuer } from '../../testing/services/oauth-issuer.ts'
import { readOAuthConfig } from './oauth-config.ts'
import { oauthScopes } from './oauth-scopes.ts'

/*
 * One organization for all tokens, and a project for each: BERTH_OAUTH_ORGANIZATION and BERTH_OAUTH_PROJECT_CLAIM.
 */

const projectClaim = 'https://berth.test/project'
const organizationId = newId('organization', new Date())

const issuer = await OAuthIssuer.open()
const variables: Readonly<Record<string, string>> = {
  BERTH_OAUTH_ISSUER: issuer.url,
  BERTH_OAUTH_ORGANIZATION: organizationId,
  BERTH_OAUTH_PROJECT_CLAIM: projectClaim,
}
const server = await TestServer.open({
  egressAllow: [new URL(issuer.url).host],
  oauth: (url) => readOAuthConfig((name) => variables[name], url) ?? assert.fail('OAuth is off'),
})
after(async () => {
  await server.close()
  await issuer.close()
})

const owner = await server.project({ organizationId })
const stranger = await server.project()

interface Context {
  readonly organization: { readonly id: string }
  readonly authorization: Readonly<Record<'credential_scope' | 'effective_scope', { readonly project_id: string }>>
}

async function signFor(project: unknown, claims: Readonly<Record<string, string>> = {}): Promise<string> {
  return issuer.sign({ aud: `${server.url}/mcp`, scope: oauthScopes.join(' '), [projectClaim]: project, ...claims })
}

async function call<Body>(token: string, path: string, project?: string, method = 'GET') {
  const headers: Record<string, string> = project === undefined ? {} : { 'x-kernel-project': project }
  return owner.call<Body>(method, path, undefined, { key: token, headers })
}

async function addProject(name: string): Promise<string> {
  const { status, body } = await owner.call<{ id: string }>('POST', '/org/projects', { name })
  assert.equal(status, 201, JSON.stringify(body))
  return body.id
}

test('a token is valid in the configured organization and in the project of its claim', async () => {
  const project = await addProject('own')

  const { status, body } = await call<Context>(
    await signFor(project, { organization: stranger.organizationId }),
    '/auth/context',
  )

  assert.equal(status, 200)
  assert.equal(body.organization.id, organizationId)
  assert.deepEqual(body.authorization, {
    credential_scope: { project_id: project },
    effective_scope: { project_id: project },
  })
})

test('a token of one project sees nothing of another one', async () => {
  const token = await signFor(await addProject('apart'))
  const { session_id: id } = await owner.session()

  assert.deepEqual((await call<unknown[]>(token, '/browsers')).body, [])
  assert.equal((await call(token, `/browsers/${id}`)).status, 404)
  assert.equal((await call(token, `/browsers/${id}`, undefined, 'DELETE')).status, 404)
  assert.equal((await call(token, '/browsers', owner.id)).status, 403)
  assert.equal((await call(token, '/browsers', 'Default')).status, 403)
  assert.equal((await call(token, '/browsers', stranger.id)).status, 404)
  assert.equal((await owner.call('GET', `/browsers/${id}`)).status, 200)
})

test('a token is invalid after its project is deleted', async () => {
  const project = await addProject('short')
  const token = await signFor(project)
  assert.equal((await call(token, '/browsers')).status, 200)

  assert.equal((await owner.call('DELETE', `/org/projects/${project}`)).status, 204)

  assert.equal((await call(token, '/browsers')).status, 404)
})

const refused = [
  ['without the claim', undefined, 401],
  ['with an empty claim', '', 401],
  ['with the name of a project', 'Default', 401],
  ['with a list of projects', [owner.id], 401],
  ['with a project of another organization', stranger.id, 404],
  ['with a project that does not exist', newId('project', new Date()), 404],
] as const
for (const [what, project, expected] of refused) {
  test(`a token ${what} gives no access`, async () => {
    const token = await signFor(project)

    for (const path of ['/browsers', '/org/projects', '/auth/context']) {
      assert.equal((await call(token, path)).status, expected, path)
    }
  })
}
