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
app.action('hang', async (ctx) => { for (;;); })
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
  const deadline = new Date(created.getTime() + 2_000)
  const late = await new TestApps(server).running(project, stored.id, 'demo', { ...fields, deadline })
  await project.call('POST', '/browsers', { headless: true, invocation_id: late.id })
  await apps.invocationRunner.start(late, 'not')

  const { body: over } = await project.call<Invocation>('GET', `/invocations/${late.id}`)
  assert.deepEqual([over.status, over.status_reason], ['failed', 'It did not end within 2 s.'])
  assert.deepEqual((await project.call('GET', '/browsers')).body, [])
})

const imports = "import Kernel from '@onkernel/sdk'\n"
const requires = "const { Kernel } = require('@onkernel/sdk')\n"
const registers = (app: string) => `new Kernel({ apiKey: 'x' }).app('${app}').action('act', async (ctx) => 1)\n`
const modules: readonly (readonly [what: string, entrypoint: string, files: Files, apps: readonly string[]])[] = [
  ['a script', 'index.cjs', { 'index.cjs': requires + registers('own') }, ['own']],
  ['TypeScript in a package of scripts', 'index.ts', { 'index.ts': imports + registers('own') }, ['own']],
  [
    'a module that imports a script, which registers an app too',
    'index.mjs',
    { 'index.mjs': `import './other.cjs'\n${imports}${registers('own')}`, 'other.cjs': requires + registers('other') },
    ['other', 'own'],
  ],
  [
    'a module, without what only scripts need of the framework',
    'index.mjs',
    {
      'index.mjs': imports + registers('own'),
      'node_modules/@onkernel/sdk/index.js': `throw new Error('it is loaded for nothing')`,
    },
    ['own'],
  ],
]
for (const [what, entrypoint, members, expected] of modules) {
  test(`${what} is deployed with the apps that it registers`, async () => {
    const project = await server.project()
    const all = new Map((await sdkIn('node_modules/@onkernel/sdk')).map(({ name, content }) => [name, content]))
    for (const [name, content] of Object.entries(members)) all.set(name, Buffer.from(content))

    const source = zip(...[...all].map(([name, content]) => ({ name, content })))
    const { status, status_reason } = await deploy(project, source, entrypoint)

    assert.equal(status, 'running', status_reason ?? 'no reason')
    const { body } = await project.call<AppVersion[]>('GET', '/apps')
    assert.deepEqual(body.map(({ app_name }) => app_name).toSorted(), expected)
  })
}

const framework = "import Kernel from '@onkernel/sdk'\nconst app = new Kernel({ apiKey: 'x' }).app('demo')\n"
const greedy = 'const all = []; for (;;) all.push(Buffer.alloc(64 * 1024 ** 2, 1))'
const installing = { name: 'demo', version: '1.0.0', scripts: { preinstall: `node -e '${greedy}'` } }
const failures: readonly (readonly [what: string, code: string, reason: RegExp, manifest?: object])[] = [
  ['throws', `throw new Error('no luck')`, /^no luck$/],
  ['ends its process', 'process.exit(3)', /exit code 3/],
  ['registers no app', 'console.log(1)', /registers no app/],
  [
    'registers too much',
    `${framework}for (let n = 0; n < 2000; n += 1) app.action('a' + n, async (ctx) => n)`,
    /more than 100 apps, or 1000 actions/,
  ],
  ['has an action without a name', `${framework}app.action('', async (ctx) => 1)`, /a name that is empty/],
  [
    'floods its output',
    `for (;;) await new Promise((done) => process.stdout.write('x'.repeat(65536), done))`,
    /more than 4 MiB/,
  ],
  ['throws behind a full pipe', `for (;;) (await import('node:fs')).writeSync(1, 'x'.repeat(65536))`, /^EAGAIN/],
  ['takes all memory', greedy, /^The build ran out of memory/],
  ['takes all memory while it is installed', '', /^The build ran out of memory/, installing],
]
for (const [what, entrypoint, reason, manifest] of failures) {
  test(`a deployment that ${what} fails with the reason, and leaves no machine`, async () => {
    const before = await driver.list()
    const members = [
      { name: 'index.mjs', content: entrypoint },
      ...(manifest ? [{ name: 'package.json', content: JSON.stringify(manifest) }] : []),
      ...(entrypoint.startsWith(framework) ? await sdkIn('node_modules/@onkernel/sdk') : []),
    ]

    const { status, status_reason } = await deploy(await server.project(), zip(...members), 'index.mjs')

    assert.equal(status, 'failed')
    assert.match(status_reason ?? '', reason)
    assert.deepEqual(await driver.list(), before)
  })
}
