import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import type Kernel from '@onkernel/sdk'
import { toFile } from '@onkernel/sdk'
import { hostName } from '../testing/pages.ts'
import { sdkApp } from '../testing/sdk-app.ts'
import { deepOnly } from './testing/deep.ts'
import { FaultTestbed } from './testing/fault-testbed.ts'
import { until } from './testing/until.ts'

const code = `
import Kernel from '@onkernel/sdk'
const kernel = new Kernel()
const app = kernel.app('demo')
app.action('echo', async (ctx, payload) => payload)
app.action('hang', async (ctx) => {
  await kernel.browsers.create({ headless: true })
  console.log('hanging')
  await new Promise(() => setInterval(() => {}, 1000))
})
`

async function deploy(client: Kernel, archive = sdkApp({ 'index.mjs': code })): Promise<string> {
  const file = await toFile(await archive, 'source.zip')
  return (await client.deployments.create({ file, entrypoint_rel_path: 'index.mjs' })).id
}

async function untilRunning(client: Kernel, id: string, limitSeconds: number): Promise<void> {
  await until(
    'a deployment that runs',
    async () => {
      const { status, status_reason } = await client.deployments.retrieve(id)
      assert.notEqual(status, 'failed', status_reason ?? '')
      return status === 'running'
    },
    { limitSeconds, everyMilliseconds: 100 },
  )
}

async function noMachines({ view }: FaultTestbed): Promise<void> {
  await until(
    'the end of all machines',
    async () => (await view.processes()).machines.length === 0 && (await view.controlGroups()).length === 0,
    { limitSeconds: 60, everyMilliseconds: 200 },
  )
}

test('an invocation whose server is killed is marked failed by the next start, which removes its machine', async () => {
  await using testbed = await FaultTestbed.open()
  const first = await testbed.start({ environment: { BERTH_RESERVE: 'app=1' } })
  const client = await first.client()
  await untilRunning(client, await deploy(client), 60)
  const hang = { app_name: 'demo', version: 'latest', action_name: 'hang', async: true }
  const { id } = await client.invocations.create(hang)
  for await (const event of await client.invocations.follow(id)) {
    if (event.event === 'log' && event.message === 'hanging') break
  }

  await first.signal('SIGKILL')
  const second = await testbed.start()

  const again = await second.client()
  const { status, status_reason } = await again.invocations.retrieve(id)
  assert.deepEqual([status, status_reason], ['failed', 'The server that ran it has stopped.'])
  const events = await Array.fromAsync(await again.invocations.follow(id))
  const lines = events.flatMap((event) => (event.event === 'log' ? [event.message] : []))
  assert.deepEqual(lines, ['hanging'], 'it ran once')
  await until('the end of its session', async () => (await again.browsers.list()).items.length === 0, {
    limitSeconds: 60,
  })
  await noMachines(testbed)
  const echo = { app_name: 'demo', version: 'latest', action_name: 'echo', payload: '[1]' }
  assert.equal((await again.invocations.create(echo)).output, '[1]')
})

test('a build whose server is killed is finished by the next one, and leaves no machine', deepOnly, async () => {
  let isSilent = true
  const asked = Promise.withResolvers<void>()
  // A registry that does not answer until the server has been killed.
  const registry = createServer((_request, response) => {
    asked.resolve()
    if (!isSilent) response.writeHead(404).end('{}')
  }).listen(0, '127.0.0.1')
  registry.unref()
  await once(registry, 'listening')
  const { port } = registry.address() as AddressInfo
  await using testbed = await FaultTestbed.open()
  const environment = {
    BERTH_EGRESS_ALLOW: `${hostName}:${port}`,
    npm_config_registry: `http://127.0.0.1:${port}/`,
  }
  const first = await testbed.start({ environment })
  const manifest = {
    dependencies: { '@onkernel/sdk': 'file:./sdk' },
    optionalDependencies: { 'no-such-package': '1.0.0' },
  }
  const archive = sdkApp({ 'index.mjs': code, 'package.json': JSON.stringify(manifest) }, 'sdk')
  const id = await deploy(await first.client(), archive)
  await asked.promise

  await first.signal('SIGKILL')
  isSilent = false
  registry.closeAllConnections()
  const second = await testbed.start({ environment })

  await untilRunning(await second.client(), id, 120)
  await noMachines(testbed)
  registry.close()
})
