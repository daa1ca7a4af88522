import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import type Kernel from '@onkernel/sdk'
import { toFile } from '@onkernel/sdk'
import { deepOnly } from './fault/testing/deep.ts'
import { until } from './fault/testing/until.ts'
import { Berth, launch, oneServerOnly } from './testing/berth.ts'
import { zipOf } from './testing/browsers/extension-files.ts'
import { sdkApp } from './testing/sdk-app.ts'
import { GitServer } from './testing/servers/git-server.ts'
import { installedVersion, PackageRegistry } from './testing/servers/package-registry.ts'

/* The unmodified official client deploys and invokes, and is the framework inside the app. */

const registry = await PackageRegistry.open()
const git = await GitServer.open()
const berth = await Berth.start({
  environment: {
    ...registry.environment,
    ...git.environment,
    BERTH_RESERVE: 'app=1',
    BERTH_EGRESS_ALLOW: `${registry.environment.BERTH_EGRESS_ALLOW},${git.environment.BERTH_EGRESS_ALLOW}`,
  },
})
const client = await berth.client()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await registry[Symbol.asyncDispose]()
  await git[Symbol.asyncDispose]()
})

const typescript = `
import { readdirSync, readFileSync, statSync } from 'node:fs'
import Kernel from '@onkernel/sdk'
import { chromium } from 'playwright-core'
import { greeting } from './words'

enum Colour { Red = 'red' }
const kernel = new Kernel()
const app = kernel.app('demo')

app.action('echo', async (ctx, payload?: unknown) => {
  console.log(greeting, ctx.invocation_id)
  const { SECRET, ENTRYPOINT_RELPATH } = process.env
  return { payload, pid: process.pid, colour: Colour.Red, SECRET, ENTRYPOINT_RELPATH }
})
app.action('throw', async (ctx) => { throw new Error('not today') })
app.action('hang', async (ctx) => { console.log('hanging'); for (;;); })
app.action('stay', async (ctx) => { console.log('staying'); await new Promise(() => setInterval(() => {}, 1000)) })
app.action('browse', async (ctx, payload: { wait?: boolean; names?: boolean }) => {
  const invocation = payload.names ? { invocation_id: ctx.invocation_id } : {}
  const session = await kernel.browsers.create({ headless: true, ...invocation })
  const browser = await chromium.connectOverCDP(session.cdp_ws_url)
  const page = browser.contexts()[0].pages()[0]
  await page.setContent('<title>from an app</title>')
  console.log('session', session.session_id)
  if (payload.wait) await new Promise(() => setInterval(() => {}, 1000))
  return { title: await page.title(), session: session.session_id }
})
app.action('look', async (ctx, { texts, deployment }: { texts: string[]; deployment: string }) => {
  const status = async (url: string) => fetch(url).then((answer) => answer.status, () => 'unreachable')
  return {
    found: texts.map((text) => search(text)),
    processes: readdirSync('/proc').filter((name) => /^\\d+$/.test(name)).length,
    own: await status(process.env.KERNEL_BASE_URL + '/apps'),
    metadata: await status('http://169.254.169.254/'),
    deployment: await kernel.deployments.retrieve(deployment).then(() => 200, (error) => error.status),
  }
})

/** The files and processes that name the text or contain it. */
function search(text: string): string[] {
  const read = (path: string) => { try { return readFileSync(path, 'latin1') } catch { return '' } }
  const list = (path: string) => { try { return readdirSync(path, { withFileTypes: true }) } catch { return [] } }
  const paths = (folder: string): string[] => list(folder + '/').flatMap((entry) => {
    const path = folder + '/' + entry.name
    if (!entry.isDirectory()) return [path]
    return ['/dev', '/proc', '/sys', '/usr'].includes(path) || entry.name === 'node_modules' ? [path] : [path, ...paths(path)]
  })
  const ofProcesses = list('/proc').flatMap(({ name }) => ['environ', 'cmdline', 'maps', 'mounts'].map((file) => '/proc/' + name + '/' + file))
  const all = [...paths(''), ...paths('/dev/shm'), ...ofProcesses, '/proc/net/unix']
  const isSmall = (path: string) => path.startsWith('/proc/') || (statSync(path, { throwIfNoEntry: false })?.size ?? 0) < 1e6
  return all.filter((path) => path.includes(text) || (isSmall(path) && read(path).includes(text)))
}
`
const names = ['@onkernel/sdk', 'playwright-core']
const versions = await Promise.all(names.map(installedVersion))
const dependencies = Object.fromEntries(names.map((name, index) => [name, versions[index] ?? '']))
const packages = Object.fromEntries(names.map((name) => [`node_modules/${name}`, { version: dependencies[name] }]))
const manifest = { name: 'demo', version: '1.0.0', type: 'module', dependencies }
const source = {
  'index.ts': typescript,
  'words.ts': `export const greeting: string = 'hello from'`,
  'package.json': JSON.stringify(manifest),
  'package-lock.json': JSON.stringify({
    name: 'demo',
    version: '1.0.0',
    lockfileVersion: 3,
    packages: { '': { name: 'demo', version: '1.0.0', dependencies }, ...packages },
  }),
}
const demo = await zipOf(source)

async function deploy(archive: Uint8Array, settings: Partial<Kernel.DeploymentCreateParams> = {}, by = client) {
  const file = await toFile(archive, 'source.zip')
  return follow(await by.deployments.create({ file, entrypoint_rel_path: 'index.ts', ...settings }), by)
}

async function deployRepository(source: Partial<Kernel.DeploymentCreateParams.Source>, version: string) {
  const all = { type: 'github', ref: 'main', entrypoint: 'index.ts', url: '', ...source } as const
  return follow(await client.deployments.create({ source: all, version }))
}

/** Follows the deployment until it runs or has failed. */
async function follow({ id }: { readonly id: string }, by = client) {
  const events = []
  for await (const event of await by.deployments.follow(id)) {
    events.push(event)
    const state = event.event === 'deployment_state' ? event.deployment.status : undefined
    if (state === 'running' || state === 'failed' || state === 'stopped') break
  }
  const last = events.at(-1)
  assert.ok(last?.event === 'deployment_state')
  const log = events.flatMap((event) => (event.event === 'log' ? [event.message] : []))
  return { id, events, state: last.deployment, log }
}

const metrics = async () => (await berth.request('/metrics')).text()
let first: Awaited<ReturnType<typeof deploy>>
before(async () => {
  const isReady = async () => /^berth_reserve_machines\{kind="app"\} 1$/m.test(await metrics())
  await until('a machine of the reserve', isReady, { limitSeconds: 60 })
  first = await deploy(demo, { version: '1', env_vars: { SECRET: 'sealed', KERNEL_API_KEY: 'mine' } })
})

const invoke = (action_name: string, payload?: unknown) =>
  client.invocations.create({
    app_name: 'demo',
    version: '1',
    action_name,
    ...(payload !== undefined && { payload: JSON.stringify(payload) }),
  })
const outputOf = ({ output, status_reason }: { output?: string; status_reason?: string }) =>
  JSON.parse(output ?? assert.fail(status_reason ?? 'no output'))

/** Reads the log of an invocation until a line matches. */
async function waitForLine(id: string, pattern: RegExp, by = client): Promise<string> {
  for await (const event of await by.invocations.follow(id)) {
    if (event.event === 'log' && pattern.test(event.message)) return event.message
  }
  assert.fail(`no line ${pattern}: ${JSON.stringify(await by.invocations.retrieve(id))}`)
}

test('a deployment reports its actions before it is running', async () => {
  assert.equal(first.state.status, 'running', JSON.stringify([first.state, first.log]))
  assert.deepEqual(
    first.events
      .filter(({ event }) => event !== 'log')
      .map(({ event }) => event)
      .slice(-2),
    ['app_version_summary', 'deployment_state'],
  )
  const apps = await client.apps.list({ app_name: 'demo', version: '1' })
  assert.deepEqual(
    apps.items.map(({ deployment, env_vars }) => ({ deployment, env_vars })),
    [{ deployment: first.id, env_vars: { SECRET: '', KERNEL_API_KEY: '' } }],
  )
})

test('an action gets its payload and environment, and its result and log are reported', async () => {
  const invocation = await invoke('echo', { of: ['many', 1] })

  assert.equal(invocation.status, 'succeeded', invocation.status_reason ?? 'no reason')
  const { pid: _pid, ...output } = outputOf(invocation)
  assert.deepEqual(output, {
    payload: { of: ['many', 1] },
    colour: 'red',
    SECRET: 'sealed',
    ENTRYPOINT_RELPATH: 'index.ts',
  })
  assert.equal(await waitForLine(invocation.id, /hello/), `hello from ${invocation.id}`)
  assert.equal((await client.invocations.retrieve(invocation.id.slice(0, 20))).id, invocation.id)
})

test('an action that throws fails with its message', async () => {
  const failed = await invoke('throw')

  assert.deepEqual([failed.status, failed.status_reason], ['failed', 'not today'])
})

test('an action that never yields ends when it is cancelled', async () => {
  const { id } = await client.invocations.create({ app_name: 'demo', version: '1', action_name: 'hang', async: true })
  await waitForLine(id, /hanging/)

  const cancelled = await client.invocations.update(id, { status: 'failed' })

  assert.equal(cancelled.status, 'failed')
  await assert.rejects(client.invocations.update(id, { status: 'failed' }), { status: 400 })
  assert.equal((await invoke('echo')).status, 'succeeded')
})

const ownFolder = oneServerOnly('the operator finds the database by the data folder')
/** The shared address of several servers is on this host's loopback, but a machine has its own loopback. */
const reachesSessions = oneServerOnly('in a machine, the address of several leads to the machine itself')

test('a session belongs to its invocation, and ends when that is cancelled', reachesSessions, async () => {
  const { id } = await client.invocations.create({
    app_name: 'demo',
    version: '1',
    action_name: 'browse',
    payload: '{"wait":true}',
    async: true,
  })
  const line = await waitForLine(id, /^session /)

  const listed = (await (
    await fetch(`${berth.url}/invocations/${id}/browsers`, {
      headers: { authorization: `Bearer ${berth.apiKey}` },
    })
  ).json()) as { browsers: { session_id: string; cdp_ws_url: string }[] }
  assert.deepEqual(
    listed.browsers.map(({ session_id }) => `session ${session_id}`),
    [line],
  )

  await client.invocations.update(id, { status: 'failed' })
  await assert.rejects(client.browsers.retrieve(line.slice('session '.length)), { status: 404 })
  await client.invocations.deleteBrowsers(id)
})

test('an app opens a session for its invocation and drives it with Playwright', reachesSessions, async () => {
  const invocation = await invoke('browse', { names: true })
  const { title, session } = outputOf(invocation)

  assert.equal(title, 'from an app')
  const listed = await berth.request(`/invocations/${invocation.id}/browsers`)
  const { browsers } = (await listed.json()) as { browsers: { session_id: string }[] }
  assert.deepEqual(
    browsers.map(({ session_id }) => session_id),
    [session],
  )
  await client.browsers.deleteByID(session)
})

test('builds and apps run in machines of the reserve', async () => {
  const text = await metrics()

  assert.match(text, /^berth_reserve_claims_total\{kind="app"\} [1-9]/m)
  assert.doesNotMatch(text, /^berth_reserve_misses_total\{reason="failed"\} [1-9]/m)
})

test(
  'an app has no access to the host, to other organizations, and to packages installed for them',
  ownFolder,
  async () => {
    const child = launch(['org', 'create', 'Other', '--json', '--data-dir', berth.dataFolder])
    const other = JSON.parse(await text(child.stdout as NodeJS.ReadableStream)) as { api_key: string }
    const theirs = client.withOptions({ apiKey: other.api_key })
    const fetchedBefore = registry.fetched
    const theirText = `of-another-${randomUUID()}`
    const archive = await zipOf({ ...source, [`${theirText}.txt`]: theirText })
    const deployed = await deploy(archive, { version: '1', env_vars: { SECRET: theirText } }, theirs)
    assert.equal(deployed.state.status, 'running', deployed.state.status_reason ?? '')
    assert.equal(registry.fetched, fetchedBefore + names.length, 'nothing that we have installed is theirs')
    const staying = { app_name: 'demo', version: '1', action_name: 'stay', async: true }
    const { id } = await theirs.invocations.create(staying)
    await waitForLine(id, /staying/, theirs)

    // The app may know folders of its own machine on the host: docs/security.md.
    const texts = ['hello from', theirText, deployed.id, import.meta.dirname]
    const seen = outputOf(await invoke('look', { texts, deployment: deployed.id }))

    const [own, ...others] = seen.found as string[][]
    assert.ok(own?.includes('/home/kernel/app/words.ts'), 'the search finds what is there')
    assert.deepEqual(others, [[], [], []])
    assert.ok(seen.processes < 20, `${seen.processes} processes`)
    assert.deepEqual([seen.own, seen.metadata, seen.deployment], [401, 'unreachable', 404])
    await theirs.invocations.update(id, { status: 'failed' })
  },
)

test('a version is replaced only with force, and reuses installed packages', async () => {
  const fetchedBefore = registry.fetched

  const refused = await deploy(demo, { version: '1' })
  assert.equal(refused.state.status, 'failed')
  assert.match(refused.state.status_reason ?? '', /force/)
  const forced = await deploy(demo, { version: '1', force: true })

  assert.equal(forced.state.status, 'running', forced.state.status_reason ?? '')
  assert.equal(registry.fetched, fetchedBefore)
  assert.equal((await client.deployments.retrieve(first.id)).status, 'stopped')
  assert.equal((await invoke('echo')).status, 'succeeded')
})

test('code that does not load fails the deployment with its error', async () => {
  const { state } = await deploy(await zipOf({ 'index.mjs': `throw new Error('no luck')` }), {
    entrypoint_rel_path: 'index.mjs',
    version: 'broken',
  })

  assert.equal(state.status, 'failed')
  assert.equal(state.status_reason, 'no luck')
})

test('a repository is deployed by branch, tag and commit, and its hooks and filters do not run', async () => {
  const files = Object.fromEntries(Object.entries(source).map(([name, content]) => [`app/${name}`, content]))
  const hostile = {
    '.gitmodules': `[submodule "x"]\n\tpath = x\n\turl = ${git.url}/owner/other\n`,
    '.gitattributes': '*.ts filter=run\n',
    'hooks/post-checkout': '#!/bin/sh\ntouch /home/kernel/app/run\n',
  }
  const { url, commit } = await git.add('demo', { files: { ...files, ...hostile } }, 'ghp_secret')
  const auth = { method: 'github_token', token: 'ghp_secret' } as const

  const all = await Promise.all(
    ['main', 'v1', commit].map((ref, index) => deployRepository({ url, ref, path: 'app', auth }, `git-${index}`)),
  )

  for (const { state, log } of all) assert.equal(state.status, 'running', JSON.stringify([state.status_reason, log]))
  const { source_type, source_url, source_ref, source_path, source_checksum, entrypoint_rel_path } = (
    all[1] ?? assert.fail()
  ).state as unknown as Readonly<Record<string, string>>
  assert.deepEqual(
    [source_type, source_url, source_ref, source_path, entrypoint_rel_path],
    ['github', url, 'v1', 'app', 'index.ts'],
  )
  assert.match(source_checksum ?? '', /^[0-9a-f]{64}$/)
  assert.deepEqual(
    git.requests.filter((request) => !request.includes('/owner/demo')),
    [],
  )
  const ran = await client.invocations.create({ app_name: 'demo', version: 'git-2', action_name: 'echo' })
  assert.equal(ran.status, 'succeeded', ran.status_reason ?? '')
})

test('a repository that cannot be fetched, or redirects, fails without revealing the token', async () => {
  const auth = { method: 'github_token', token: 'ghp_wrong' } as const
  const linking = await git.add('linking', { files: { 'index.ts': '' }, links: { out: '/etc/passwd' } })
  const plain = await git.add('plain', { files: { 'index.ts': '' } })
  const locked = await git.add('locked', { files: { 'index.ts': '' } }, 'ghp_other')
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'0a'.repeat(32)}\nsize 5\n`
  const large = await git.add('large', { files: { 'index.ts': '', 'app/model.bin': pointer } })
  const nested = await git.add('nested', { files: { 'index.ts': '' }, submodules: ['lib/other'] })
  const before = registry.fetched

  const failures: readonly (readonly [Partial<Kernel.DeploymentCreateParams.Source>, RegExp])[] = [
    [{ url: locked.url, auth }, /^source: the repository could not be fetched/],
    [{ url: linking.url, ref: 'other' }, /^source: the repository could not be fetched/],
    [{ url: linking.url, path: 'none' }, /^source: the repository could not be fetched/],
    [{ url: linking.url }, /^source: .*leads out/],
    [{ url: large.url }, /^source: Git LFS has the content of app\/model.bin, /],
    [{ url: nested.url }, /^source: the repository has submodules, which are not fetched: lib\/other\. /],
    [{ url: plain.url, entrypoint: 'none.ts' }, /^source.entrypoint: the repository contains no file none.ts/],
    [{ url: git.redirect('to-host', `http://127.0.0.1:${new URL(berth.url).port}`) }, /could not be fetched/],
    [{ url: git.redirect('to-metadata', 'http://169.254.169.254/latest') }, /could not be fetched/],
    [{ url: git.redirect('to-file', 'file:///etc') }, /could not be fetched/],
  ]
  const all = await Promise.all(failures.map(([source], index) => deployRepository(source, `bad-${index}`)))

  for (const [index, { state, events }] of all.entries()) {
    assert.equal(state.status, 'failed')
    assert.match(state.status_reason ?? '', failures[index]?.[1] ?? /^$/, JSON.stringify(failures[index]?.[0]))
    assert.doesNotMatch(JSON.stringify(events), /ghp_wrong|eC1hY2Nlc3MtdG9rZW4/)
  }
  assert.equal(registry.fetched, before)
})

const lockOf = (spelling: string) => ({ dependencies: { '@onkernel/sdk': `${spelling}:./sdk` } })
const managers: readonly (readonly [spec: string, lockName: string, lock: string, manifest?: object])[] = [
  [
    'pnpm@10.34.9',
    'pnpm-lock.yaml',
    `lockfileVersion: '9.0'
settings:
  autoInstallPeers: true
  excludeLinksFromLockfile: false
importers:
  .:
    dependencies:
      '@onkernel/sdk':
        specifier: file:./sdk
        version: file:sdk
packages:
  '@onkernel/sdk@file:sdk':
    resolution: {directory: sdk, type: directory}
snapshots:
  '@onkernel/sdk@file:sdk': {}
`,
  ],
  ['yarn@1.22.22', 'yarn.lock', `# yarn lockfile v1\n\n\n"@onkernel/sdk@file:./sdk":\n  version "0.84.0"\n`],
  [
    '@yarnpkg/cli-dist@4.18.1',
    'yarn.lock',
    `# This file is generated by running "yarn install" inside your project.
# Manual changes might be lost - proceed with caution!

__metadata:
  version: 10
  cacheKey: 10c0

"@onkernel/sdk@portal:./sdk::locator=demo%40workspace%3A.":
  version: 0.0.0-use.local
  resolution: "@onkernel/sdk@portal:./sdk::locator=demo%40workspace%3A."
  languageName: node
  linkType: soft

"demo@workspace:.":
  version: 0.0.0-use.local
  resolution: "demo@workspace:."
  dependencies:
    "@onkernel/sdk": "portal:./sdk"
  languageName: unknown
  linkType: soft
`,
    lockOf('portal'),
  ],
  [
    `@oven/bun-linux-${process.arch === 'x64' ? 'x64-baseline' : 'aarch64'}@1.4.5`,
    'bun.lock',
    JSON.stringify({
      lockfileVersion: 2,
      configVersion: 1,
      workspaces: { '': { name: 'demo', ...lockOf('file') } },
      packages: { '@onkernel/sdk': ['@onkernel/sdk@file:sdk', {}] },
    }),
  ],
]
test('the lock file of every package manager is respected', deepOnly, async () => {
  for (const [spec] of managers) await registry.add(spec)
  const code = `
    import Kernel from '@onkernel/sdk'
    new Kernel().app('locked').action('act', async (ctx) => 'ran')`

  for (const [spec, lockName, lock, own = lockOf('file')] of managers) {
    const archive = await sdkApp(
      {
        'index.mjs': code,
        'package.json': JSON.stringify({ name: 'demo', version: '1.0.0', type: 'module', ...own }),
        [lockName]: lock,
      },
      'sdk',
    )
    const { state, log } = await deploy(archive, { entrypoint_rel_path: 'index.mjs', version: spec })

    assert.equal(state.status, 'running', JSON.stringify([spec, state.status_reason, log]))
    const { output } = await client.invocations.create({ app_name: 'locked', version: spec, action_name: 'act' })
    assert.equal(output, '"ran"', spec)
  }
})
