import assert from 'node:assert/strict'
import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { AppVersion, Deployment, Invocation } from '@berth/contract/apps/app.ts'
import type { DeploymentId } from '@berth/contract/common/ids.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { zip } from '@berth/runtime/testing/zip.ts'
import type { EgressLink } from '../../egress-link/egress-link.ts'
import { LocalTestbed } from '../../testing/local-testbed.ts'
import { TestServer } from '../../testing/server-test.ts'
import { createAppServices } from './create-app-services.ts'

/*
 * A build in a real machine, with a dependency that needs no network.
 */

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
app.action('echo', async (ctx, payload) => { console.log('in', ctx.invocation_id); return { payload, word: process.env.WORD } })
`
const sdkFolder = join(import.meta.dirname, '../../../../../node_modules/@onkernel/sdk')
const dependencies = { '@onkernel/sdk': 'file:./sdk' }
const { version } = JSON.parse(await readFile(join(sdkFolder, 'package.json'), 'utf8'))
const files: Readonly<Record<string, string>> = {
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
const archive = zip(
  ...Object.entries(files).map(([name, content]) => ({ name, content })),
  ...(await Promise.all(
    sdkNames.map(async (name) => ({ name: `sdk/${name}`, content: await readFile(join(sdkFolder, name)) })),
  )),
)

test('a deployment is built, serves its app, and hands what was installed to the next one', async () => {
  const project = await server.project()
  const deploy = async () => {
    const form = new FormData()
    form.set('file', new Blob([new Uint8Array(archive)]), 'source.zip')
    form.set('entrypoint_rel_path', 'index.js')
    form.set('env_vars[WORD]', 'sealed')
    const headers = { authorization: `Bearer ${project.key}` }
    const response = await fetch(`${server.url}/deployments`, { method: 'POST', headers, body: form })
    const { id } = (await response.json()) as Deployment
    await apps.builds.run(id as DeploymentId, new AbortController().signal)
    const { body } = await project.call<Deployment>('GET', `/deployments/${id}`)
    assert.equal(body.status, 'running', body.status_reason ?? 'no reason')
    return body
  }
  const first = await deploy()
  const second = await deploy()

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
    [['demo', second.id, ['echo']]],
  )
  assert.equal((await project.call<Deployment>('GET', `/deployments/${first.id}`)).body.status, 'stopped')

  const request = { app_name: 'demo', action_name: 'echo', version: 'latest', payload: '[1]', async: false } as const
  const invocation = await apps.invocations.create(project.id, { ...request, async_timeout_seconds: undefined })

  assert.deepEqual([invocation.status, invocation.output], ['succeeded', '{"payload":[1],"word":"sealed"}'])
  const { body: told } = await project.call<Invocation>('GET', `/invocations/${invocation.id}`)
  assert.equal(told.output, invocation.output)
})
