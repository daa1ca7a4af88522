import assert from 'node:assert/strict'
import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { AppVersion, Deployment, Invocation } from '@berth/contract/apps/app.ts'
import type { DeploymentId } from '@berth/contract/common/ids.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { zip } from '@berth/runtime/testing/zip.ts'
import type { EgressLink } from '../../egress-link/egress-link.ts'
import { LocalTestbed } from '../../testing/machines/local-testbed.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'
import { TestApps } from '../../testing/test-apps.ts'
import { createAppServices } from './create-app-services.ts'

/* A build in a real machine, with a dependency that needs no network. */

const server = await TestServer.open()
const testbed = await LocalTestbed.open()
const driver = await testbed.openDriverWithAgent()
const startMachine = driver.start.bind(driver)
// Less memory than others have, because two builds fill it.
driver.start = (spec, signal) => startMachine({ ...spec, memory: '1GiB' }, signal)
const { services } = server
const apps = createAppServices({
  ...services,
  database: server.database,
  organizationOf: (projectId) => services.organizations.organizationOf(projectId),
  driver,
  egressLink: { openRoute: async () => {}, closeRoute: async () => {} } as unknown as EgressLink,
  jobs: server.jobs,
  serverId: 'test',
  warmMilliseconds: 60_000,
  gitHubUrl: 'https://github.com',
  clock: server.clock,
  logger: createLogger({ name: 'test', level: 'silent', json: true }),
})
after(async () => {
  await apps.warmMachines.close()
  await testbed.close()
  await server.close()
})

const code = `
import Kernel from '@onkernel/sdk'
const app = new Kernel().app('demo')
console.log('loading')
app.action('hang', async (ctx) => new Promise((done) => setTimeout(done, 60_000)))
app.action('echo', async (ctx, payload) => { console.log('in', ctx.invocation_id); return { payload, word: process.env.WORD } })
`
type Files = Readonly<Record<string, string>>
const sdkFolder = join(import.meta.dirname, '../../../../../node_modules/@onkernel/sdk')
const dependencies = { '@onkernel/sdk': 'file:./sdk' }
const { version } = JSON.parse(await readFile(join(sdkFolder, 'package.json'), 'utf8'))
const files: Files = {
  'index.js': code,
  'package.json': JSON.stringify({ name: 'demo', version: '1.0.0', type: 'module', dependencies }),
  'package-lock.json': JSON.stringify({
    name: 'demo',
    version: '1.0.0',
    lockfileVersion: 3,
    packages: {
      '': { name: 'demo', version: '1.0.0', dependencies },
      'node_modules/@onkernel/sdk': { resolved: 'sdk', link: true },
      sdk: { name: '@onkernel/sdk', version },
    },
  }),
}
const sdkNames = await Array.fromAsync(glob('**/*.{js,mjs,json}', { cwd: sdkFolder }))
const sdkIn = (folder: string) =>
  Promise.all(
    sdkNames.map(async (name) => ({ name: `${folder}/${name}`, content: await readFile(join(sdkFolder, name)) })),
  )
const archive = zip(...Object.entries(files).map(([name, content]) => ({ name, content })), ...(await sdkIn('sdk')))

/** Deploys and builds, whatever the result. */
async function deploy(project: TestProject, source = archive, entrypoint = 'index.js'): Promise<Deployment> {
  const file = new Blob([new Uint8Array(source)])
  const fields = { file, entrypoint_rel_path: entrypoint, 'env_vars[WORD]': 'sealed' }
  const { body } = await new TestApps(server).post<Deployment>(project, fields)
  await apps.builds.run(body.id as DeploymentId, new AbortController().signal)
  return (await project.call<Deployment>('GET', `/deployments/${body.id}`)).body
}

test('a deployment is built, serves its app, and shares its installed dependencies with the next one', async () => {
  const project = await server.project()
  const [first, second] = [await deploy(project), await deploy(project)]
  for (const { status, status_reason } of [first, second]) assert.equal(status, 'running', status_reason ?? 'no reason')

  const lines: string[] = []
  const ending = new AbortController()
  const stored = await apps.deployments.get(project.id, second.id)
  for await (const event of apps.appEvents.ofDeployment(stored, { since: undefined, signal: ending.signal })) {
    if (event.event === 'log') lines.push(event.message)
    if (event.event === 'log' && event.message === 'loading') break
  }
  assert.deepEqual(lines, ['The dependencies are those of an earlier deployment.', 'loading'])
  const { body: served } = await project.call<AppVersion[]>('GET', '/apps')
  assert.deepEqual(
    served.map(({ app_name, deployment, actions }) => [app_name, deployment, actions.map(({ name }) => name)]),
    [['demo', second.id, ['hang', 'echo']]],
  )
  assert.equal((await project.call<Deployment>('GET', `/deployments/${first.id}`)).body.status, 'stopped')

  const request = { app_name: 'demo', action_name: 'echo', version: 'latest', payload: '[1]', async: false } as const
  const invocation = await apps.invocations.create(project.id, { ...request, async_timeout_seconds: undefined })

  assert.deepEqual([invocation.status, invocation.output], ['succeeded', '{"payload":[1],"word":"sealed"}'])
  const { body: told } = await project.call<Invocation>('GET', `/invocations/${invocation.id}`)
  assert.equal(told.output, invocation.output)

  const created = server.clock.now()
  const fields = { action_name: 'hang', server_id: 'test', status: 'queued' as const, created_at: created }
  const deadline = new Date(created.getTime() + 1_000)
  const late = await new TestApps(server).running(project, stored.id, 'demo', { ...fields, deadline })
  await project.call('POST', '/browsers', { headless: true, invocation_id: late.id })
  await apps.invocationRunner.start(late, 'not')

  const { body: over } = await project.call<Invocation>('GET', `/invocations/${late.id}`)
  assert.deepEqual([over.status, over.status_reason], ['failed', 'It did not end within 1 s.'])
  assert.deepEqual((await project.call('GET', '/browsers')).body, [])
})

test('a module that imports a script, which registers an app too, is deployed with both', async () => {
  const project = await server.project()
  const register = (app: string) => `new Kernel({ apiKey: 'x' }).app('${app}').action('act', async (ctx) => 1)\n`
  const source = zip(
    {
      name: 'index.mjs',
      content: `import './other.cjs'\nimport Kernel from '@onkernel/sdk'\n${register('own')}`,
    },
    { name: 'other.cjs', content: `const { Kernel } = require('@onkernel/sdk')\n${register('other')}` },
    ...(await sdkIn('node_modules/@onkernel/sdk')),
  )

  const { status, status_reason } = await deploy(project, source, 'index.mjs')

  assert.equal(status, 'running', status_reason ?? 'no reason')
  const { body } = await project.call<AppVersion[]>('GET', '/apps')
  assert.deepEqual(body.map(({ app_name }) => app_name).toSorted(), ['other', 'own'])
})

const greedy = 'const all = []; for (;;) all.push(Buffer.alloc(64 * 1024 ** 2, 1))'
const installing = { name: 'demo', version: '1.0.0', scripts: { preinstall: `node -e '${greedy}'` } }
const failures: readonly (readonly [what: string, code: string, reason: RegExp, manifest?: object])[] = [
  ['throws', `throw new Error('no luck')`, /^no luck$/],
  ['takes all memory', greedy, /^The build ran out of memory/],
  ['takes all memory while it is installed', '', /^The build ran out of memory/, installing],
]
for (const [what, entrypoint, reason, manifest] of failures) {
  test(`a deployment that ${what} fails with the reason, and leaves no machine`, async () => {
    const before = await driver.list()
    const members = [
      { name: 'index.mjs', content: entrypoint },
      ...(manifest ? [{ name: 'package.json', content: JSON.stringify(manifest) }] : []),
    ]

    const { status, status_reason } = await deploy(await server.project(), zip(...members), 'index.mjs')

    assert.equal(status, 'failed')
    assert.match(status_reason ?? '', reason)
    assert.deepEqual(await driver.list(), before)
  })
}
