import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Deployment } from '@berth/contract/apps/app.ts'
import type { DeploymentId, ProjectId } from '@berth/contract/common/ids.ts'
import { linkMode, type ZipMember, zip } from '@berth/runtime/testing/zip.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'
import { appSource, type DeploymentFields as Fields, TestApps } from '../../testing/test-apps.ts'
import { DeploymentStore } from './deployments/deployment-store.ts'

const server = await TestServer.open()
after(() => server.close())
const deployments = new DeploymentStore(server.database)
const apps = new TestApps(server)

const archive = (...members: readonly ZipMember[]) => new Blob([new Uint8Array(zip(...appSource, ...members))])

const refused: readonly (readonly [what: string, fields: Fields, rule: RegExp])[] = [
  ['no archive', { file: undefined }, /^file: is missing/],
  ['no entrypoint', { entrypoint_rel_path: undefined }, /^entrypoint_rel_path: is missing/],
  ['an entrypoint that is not there', { entrypoint_rel_path: 'other.ts' }, /^entrypoint_rel_path: .*no file other.ts/],
  ['an entrypoint outside', { entrypoint_rel_path: '../index.ts' }, /^entrypoint_rel_path: .*inside/],
  ['an entrypoint of no kind', { entrypoint_rel_path: 'index.rb' }, /^entrypoint_rel_path: must end in/],
  ['another region', { region: 'eu' }, /^region: /],
  ['a force that is none', { force: 'maybe' }, /^force: must be one of true, false/],
  ['a variable without a name', { 'env_vars[]': 'x' }, /^env_vars: must be names/],
  ['a variable with a bad name', { 'env_vars[A=B]': 'x' }, /^env_vars: must be names/],
  ['an archive that is none', { file: new Blob(['no zip']) }, /^file: the archive is rejected/],
  ['an archive that leaves its folder', { file: archive({ name: '../x' }) }, /^file: the archive is rejected/],
  [
    'a link that leaves its folder',
    { file: archive({ name: 'x', content: '/etc/passwd', mode: linkMode }) },
    /^file: .*leads out/,
  ],
  [
    'an archive that holds more than it says',
    { file: archive({ name: 'x', content: 'xx', claimedSize: 1 }) },
    /^file: /,
  ],
]
const repository = { type: 'github', url: 'https://github.com/owner/name', ref: 'main', entrypoint: 'index.ts' }
const from = (change: object): Fields => ({
  file: undefined,
  entrypoint_rel_path: undefined,
  source: JSON.stringify({ ...repository, ...change }),
})
const refusedRepositories: readonly (readonly [what: string, fields: Fields, rule: RegExp])[] = [
  ['text that is no JSON', { ...from({}), source: '{' }, /^source: must be JSON/],
  ['a part twice', { ...from({}), 'source[ref]': 'main' }, /^source: must be given once/],
  ['both kinds', { source: JSON.stringify(repository) }, /^source: must not be given with file/],
  ['two entrypoints', { ...from({}), entrypoint_rel_path: 'a.ts' }, /^entrypoint_rel_path: must not be given with/],
  ['another type', from({ type: 'gitlab' }), /^source.type: must be github/],
  ['a field of newer clients', from({ depth: 1 }), /^source: must not have the field depth/],
  ['a field of newer clients by its name', { ...from({}), source: undefined, 'source[depth]': '1' }, /^source/],
  ...[
    'ssh://git@github.com/owner/name',
    'file:///etc',
    'ext::sh -c id',
    'https://other.example/owner/name',
    'https://github.com:444/owner/name',
    'http://github.com/owner/name',
    'https://user:secret@github.com/owner/name',
    'https://github.com/owner/name/tree/main',
    'https://github.com/owner/..',
    'https://github.com/owner/name?x',
    '--upload-pack=id',
  ].map((url) => [`the URL ${url}`, from({ url }), /^source.url: must be a repository/] as const),
  ...['--upload-pack=id', '+main', 'a:b', 'a..b', 'a b', 'refs/*', 'main\n', '@{-1}', 'a^'].map(
    (ref) => [`the reference ${JSON.stringify(ref)}`, from({ ref }), /^source.ref: must be a branch/] as const,
  ),
  ['a folder outside', from({ path: '../x' }), /^source.path: must be a path inside/],
  ['an entrypoint outside', from({ entrypoint: '/etc/x.ts' }), /^source.entrypoint: must be a path inside/],
  ['a token that is none', from({ auth: { method: 'github_token', token: 'a\r\nb: c' } }), /^source.auth.token: /],
  ['another kind of credentials', from({ auth: { method: 'password', token: 'x' } }), /^source.auth.method: /],
]
for (const [what, fields, rule] of refusedRepositories) {
  test(`rejects a repository with ${what}`, async () => {
    const { status, body } = await apps.post(await server.project(), fields)

    assert.equal(status, 400)
    assert.match(body.message, rule)
  })
}

const spellings: Readonly<Record<string, Fields>> = {
  JSON: { source: JSON.stringify({ ...repository, path: 'a/b/', auth: { method: 'github_token', token: 'ghp_1' } }) },
  brackets: {
    ...Object.fromEntries(Object.entries(repository).map(([name, value]) => [`source[${name}]`, value])),
    'source[path]': 'a/b',
    'source[auth][method]': 'github_token',
    'source[auth][token]': 'ghp_1',
  },
  dots: {
    ...Object.fromEntries(Object.entries(repository).map(([name, value]) => [`source.${name}`, value])),
    'source.path': './a/b',
    'source.auth.method': 'github_token',
    'source.auth.token': 'ghp_1',
  },
}
for (const [spelling, fields] of Object.entries(spellings)) {
  test(`accepts a repository in ${spelling}, and returns everything except its token`, async () => {
    const project = await server.project()

    const { status, body } = await apps.post<Deployment>(project, { ...from({}), source: undefined, ...fields })

    assert.equal(status, 201, JSON.stringify(body))
    const { source_type, source_url, source_ref, source_path, entrypoint_rel_path, source_checksum } = body
    assert.deepEqual(
      { source_type, source_url, source_ref, source_path, entrypoint_rel_path, source_checksum },
      {
        source_type: 'github',
        source_url: repository.url,
        source_ref: 'main',
        source_path: 'a/b',
        entrypoint_rel_path: 'index.ts',
        source_checksum: undefined,
      },
    )
    assert.doesNotMatch(JSON.stringify((await project.call('GET', `/deployments/${body.id}`)).body), /ghp_1/)
    const stored = await deployments.get(body.id as DeploymentId)
    assert.doesNotMatch(JSON.stringify(stored), /ghp_1/)
    assert.ok(!stored.sealed_token?.includes('ghp_1'), 'tokens are sealed')
  })
}

test('a token is kept no longer than it is needed', async () => {
  const project = await server.project()
  const tokenOf = async (id: string) => (await deployments.get(id as DeploymentId)).sealed_token
  const deploy = async () => {
    const { body } = await apps.post<Deployment>(project, from({ auth: { method: 'github_token', token: 'ghp_1' } }))
    assert.ok(await tokenOf(body.id))
    return body.id
  }
  const [fetched, failed, deleted] = [await deploy(), await deploy(), await deploy()]

  await deployments.setSource(fetched as DeploymentId, { checksum: 'x', blob: 'x' })
  await deployments.fail(failed as DeploymentId, 'no luck', server.clock.now())
  await project.call('DELETE', `/deployments/${deleted}`)

  assert.deepEqual(await Promise.all([fetched, failed, deleted].map(tokenOf)), [null, null, null])
})

for (const [what, fields, rule] of refused) {
  test(`rejects a deployment with ${what}`, async () => {
    const { status, body } = await apps.post(await server.project(), fields)

    assert.equal(status, 400)
    assert.match(body.message, rule)
  })
}

test('accepts the variables in the spelling of any client, and returns only their names', async () => {
  const project = await server.project()

  const { status, body } = await apps.post<Deployment>(project, {
    'env_vars[A]': '1',
    'env_vars.B_C': '2',
    version: '',
  })

  assert.equal(status, 201, JSON.stringify(body))
  assert.deepEqual([body.status, body.env_vars, body.source_type], ['queued', { A: '', B_C: '' }, 'file'])
  const { body: listed } = await project.call<Deployment[]>('GET', '/deployments?limit=101')
  assert.deepEqual(listed, [body])
  assert.ok(!(await readStored(body.id)).includes('B_C'), 'variables are sealed')
})

async function readStored(id: string): Promise<Buffer> {
  return (await deployments.get(id as DeploymentId)).sealed_env
}

test('a deleted deployment leaves every list at once, and is found only once', async () => {
  const project = await server.project()
  const { body } = await apps.post<Deployment>(project, {})

  const all = await Promise.all([1, 2].map(() => project.call('DELETE', `/deployments/${body.id}`)))

  assert.deepEqual(all.map(({ status }) => status).toSorted(), [204, 404])
  assert.deepEqual((await project.call('GET', '/deployments')).body, [])
  assert.equal((await project.call('GET', `/deployments/${body.id}`)).status, 404)
})

const queries: readonly (readonly [path: string, rule: RegExp])[] = [
  ['/deployments?app_version=1', /^app_version: needs app_name/],
  ['/invocations?since=yesterday', /^since: must be a time/],
  ['/invocations?status=lost', /^status: /],
]
for (const [path, rule] of queries) {
  test(`refuses ${path}`, async () => {
    const project = await server.project()
    const { status, body } = await project.call<{ message: string }>('GET', path)

    assert.equal(status, 400)
    assert.match(body.message, rule)
  })
}

test('of two deployments of one version, the second needs force, and the first stops then', async () => {
  const project = await server.project()
  const first = await apps.serving(project, 'app', '1')

  const refused = await apps.serving(project, 'app', '1')
  const forced = await apps.serving(project, 'app', '1', { force: 'true' })
  const latest = [await apps.serving(project, 'app'), await apps.serving(project, 'app')]

  assert.deepEqual([refused.published, refused.taken], [false, 'app'])
  assert.deepEqual([forced.published, forced.stopped], [true, [first.id]])
  assert.deepEqual(latest[1]?.stopped, [latest[0]?.id])
  const { body } = await project.call<{ deployment: string }[]>('GET', '/apps?app_name=app&version=1')
  assert.deepEqual(
    body.map(({ deployment }) => deployment),
    [forced.id],
  )
})

test('a build that is interrupted repeatedly fails', async () => {
  const project = await server.project()
  const { body } = await apps.post<Deployment>(project, {})
  const id = body.id as DeploymentId
  for (let attempt = 0; attempt < 3; attempt += 1) await deployments.claim(id, server.clock.now())

  await server.services.builds.run(id, new AbortController().signal)

  const { body: failed } = await project.call<Deployment>('GET', `/deployments/${id}`)
  assert.deepEqual([failed.status, failed.status_reason], ['failed', 'The build was interrupted several times.'])
})

async function eventsOf(project: TestProject, path: string): Promise<readonly { event: string }[]> {
  const response = await fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${project.key}` } })
  assert.equal(response.headers.get('x-sse-content-type'), 'application/json')
  const text = await response.text()
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
}

test('streams of ended deployments and invocations contain the log, then the state, and end', async () => {
  const project = await server.project()
  const { id } = await apps.serving(project, 'app')
  const invocation = await apps.running(project, id, 'app')
  server.services.appLogs.writer(id, invocation.id)('a line')
  await server.services.appLogs.flush()
  await project.call('PATCH', `/invocations/${invocation.id}`, { status: 'succeeded', output: '1' })
  await apps.serving(project, 'app')

  const ofInvocation = await eventsOf(project, `/invocations/${invocation.id}/events`)
  const ofDeployment = await eventsOf(project, `/deployments/${id}/events?since=`)

  assert.deepEqual(
    ofInvocation.map(({ event }) => event),
    ['log', 'invocation_state'],
  )
  assert.deepEqual(
    ofDeployment.map(({ event }) => event),
    ['log', 'deployment_state'],
  )
})

test('of two first uses of a deployment, one creates its key, and a key that cannot be stored does not exist', async () => {
  const project = await server.project()
  const { id } = await apps.serving(project, 'app')
  const deployment = await deployments.get(id)
  const environmentOf = () => server.services.appEnvironment.of(deployment)
  const keys = async () => (await project.call<{ id: string; name: string }[]>('GET', '/org/api_keys')).body
  const before = (await keys()).length

  const broken = deployments.takeKey(id, async (database) => {
    const owner = await server.database.selectFrom('organizations').select('id').executeTakeFirstOrThrow()
    const creator = { id: owner.id, name: null }
    const request = { name: 'lost', projectId: null, daysToExpire: undefined }
    await (await server.services.apiKeys.prepare(owner.id, creator, request)).insert(database)
    throw new Error('killed')
  })
  await assert.rejects(broken, { message: 'killed' })
  const [first, second] = await Promise.all([environmentOf(), environmentOf()])

  assert.ok(first?.KERNEL_API_KEY)
  assert.equal(first?.KERNEL_API_KEY, second?.KERNEL_API_KEY)
  const after = await keys()
  assert.deepEqual([after.length - before, after.some(({ name }) => name === 'lost')], [1, false])
})

test('dependencies of a lock file are shared only within the organization', async () => {
  const [project, stranger] = [await server.project(), await server.project()]
  const { body: sibling } = await project.call<{ id: ProjectId }>('POST', '/org/projects', { name: 'sibling' })
  const { id } = await apps.serving(project, 'app')

  await deployments.setDependencies(id, 'blob', 'key')

  const found = [project.id, sibling.id, stranger.id].map((of) => deployments.findDependencies(of as ProjectId, 'key'))
  assert.deepEqual(await Promise.all(found), ['blob', 'blob', undefined])
})
