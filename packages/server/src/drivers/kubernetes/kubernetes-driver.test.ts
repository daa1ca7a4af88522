import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KubernetesTestbed, noCluster } from '../../testing/machines/kubernetes-testbed.ts'
import { machineSpec } from '../../testing/machines/machine-spec.ts'
import { driverSuite } from '../driver-suite.ts'
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
