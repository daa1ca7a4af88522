import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { BerthError } from '@berth/contract/errors.ts'
import { KubernetesTestbed, noCluster } from '../../testing/machines/kubernetes-testbed.ts'
import { machineSpec } from '../../testing/machines/machine-spec.ts'
import { driverSuite } from '../driver-suite.ts'
import type { KubernetesOptions } from '../kubernetes-options.ts'
import { containerNames, podName } from './machine-pod.ts'

if (noCluster === undefined) driverSuite('kubernetes driver', () => KubernetesTestbed.open())
else test('kubernetes driver', { skip: noCluster }, () => {})

test('every server can see which server started a machine', { skip: noCluster }, async (context) => {
  const testbed = await KubernetesTestbed.open()
  context.after(() => testbed.close())
  const [starting, looking] = [await testbed.openDriver(), await testbed.openDriver()]
  const spec = machineSpec()

  await starting.start(spec, AbortSignal.timeout(60_000))

  assert.deepEqual([...(await looking.listByServer())], [[spec.id, testbed.serverId]])
})

test('the resource requests of a waiting machine are raised at the claim', {
  skip: noCluster ?? false,
}, async () => {
  const testbed = await KubernetesTestbed.open()
  try {
    const driver = await testbed.openDriver({ cpuRequest: '20m' })
    const { id } = await driver.start(machineSpec({ hasLowPriority: true }), AbortSignal.timeout(60_000))
    const readResources = async () => {
      const pod = await testbed.api.readNamespacedPod({ name: podName(id), namespace: testbed.namespace })
      const machine = pod.spec?.containers.find(({ name }) => name === containerNames.machine)
      return { requests: machine?.resources?.requests, limits: machine?.resources?.limits }
    }
    const before = await readResources()

    await driver.raisePriority(id)

    const after = await readResources()
    assert.equal(before.requests?.cpu, '1m')
    assert.notEqual(before.requests?.memory, before.limits?.memory)
    assert.deepEqual(after, { requests: { cpu: '20m', memory: before.limits?.memory }, limits: before.limits })
  } finally {
    await testbed.close()
  }
})

/** How long a caller waits at most to be told that its machine cannot start. */
const toldMilliseconds = 20_000

interface Refusal {
  readonly why: string
  readonly options: Partial<KubernetesOptions>
  readonly code: string | undefined
  readonly reason: RegExp
}

const refusals: readonly Refusal[] = [
  {
    why: 'no node has as much processor as it requests',
    options: { cpuRequest: '1000' },
    code: 'capacity_exhausted',
    reason: /Insufficient cpu/,
  },
  {
    why: 'its image cannot be pulled',
    options: { image: 'localhost:1/berth-absent:1' },
    code: undefined,
    reason: /ErrImagePull|ImagePullBackOff/,
  },
  {
    why: 'the name of its image is none',
    options: { image: 'NO IMAGE' },
    code: undefined,
    reason: /InvalidImageName/,
  },
  {
    why: 'there is no such runtime class',
    options: { runtimeClass: 'absent' },
    code: undefined,
    reason: /RuntimeClass "absent" not found/,
  },
  {
    why: 'its node has no such profile of system calls',
    options: { seccompProfile: 'absent.json' },
    code: undefined,
    reason: /absent\.json/,
  },
]

for (const { why, options, code, reason } of refusals) {
  test(`a start says within seconds that ${why}, and leaves nothing`, { skip: noCluster ?? false }, async (context) => {
    const testbed = await KubernetesTestbed.open()
    context.after(() => testbed.close())
    const driver = await testbed.openDriver(options)

    const failure = await driver.start(machineSpec(), AbortSignal.timeout(toldMilliseconds)).catch((error) => error)

    assert.match(failure.message, reason)
    assert.equal(failure.code, code)
    assert.deepEqual(await testbed.remains(), [])
  })
}

for (const [why, hard] of [
  ['has as many pods as its quota allows', { pods: '0' }],
  ['has as much memory in use as its quota allows', { 'limits.memory': '1Gi' }],
  ['has as many Secrets as its quota allows', { secrets: '0' }],
] as const) {
  test(`a start says at once that the namespace ${why}`, { skip: noCluster ?? false }, async (context) => {
    const testbed = await KubernetesTestbed.open()
    context.after(() => testbed.close())
    const namespace = await testbed.createNamespace(hard)
    context.after(() => testbed.api.deleteNamespace({ name: namespace }))
    const driver = await testbed.openDriver({ namespace })

    const start = driver.start(machineSpec(), AbortSignal.timeout(toldMilliseconds))

    await assert.rejects(start, (error: Error) => {
      assert.ok(error instanceof BerthError)
      assert.equal(error.code, 'capacity_exhausted')
      assert.match(error.message, /exceeded quota/)
      return true
    })
    assert.deepEqual(await driver.list(), [])
  })
}

test('what the kernel kills for want of memory is counted, and a machine that ends of it says so', {
  skip: noCluster ?? false,
}, async (context) => {
  const testbed = await KubernetesTestbed.open()
  context.after(() => testbed.close())
  const driver = await testbed.openDriver()
  const machine = await driver.start(machineSpec(), AbortSignal.timeout(60_000))
  assert.equal(await driver.countMemoryKills(machine.id), 0)

  // It keeps all that it reads. The count is asked for by a driver that has not asked yet.
  const looking = await testbed.openDriver()
  await testbed.runIn(machine.id, '/usr/bin/tail', '/dev/zero')

  // Where the kernel ends all of a container at once, the machine is gone with it.
  const hasEnded = await Promise.race([machine.ended.then(() => true), delay(5_000, false)])
  assert.ok((await looking.countMemoryKills(machine.id)) > 0)
  if (hasEnded) assert.match(await driver.lastLines(machine.id), /OOMKilled/)
})
