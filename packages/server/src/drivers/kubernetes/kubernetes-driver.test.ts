import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KubernetesTestbed, noCluster } from '../../testing/kubernetes-testbed.ts'
import { machineSpec } from '../../testing/machine-spec.ts'
import { driverSuite } from '../driver-suite.ts'

if (noCluster === undefined) driverSuite('kubernetes driver', () => KubernetesTestbed.open())
else test('kubernetes driver', { skip: noCluster }, () => {})

test('every server finds out which server has started a machine', { skip: noCluster }, async (context) => {
  const testbed = await KubernetesTestbed.open()
  context.after(() => testbed.close())
  const [starting, looking] = [await testbed.openDriver(), await testbed.openDriver()]
  const spec = machineSpec()

  await starting.start(spec, AbortSignal.timeout(60_000))

  assert.deepEqual([...(await looking.listByServer())], [[spec.id, testbed.serverId]])
})
