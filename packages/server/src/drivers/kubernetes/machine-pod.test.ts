import assert from 'node:assert/strict'
import { test } from 'node:test'
import { machineSpec } from '../../testing/machine-spec.ts'
import { machinePod, type PodOptions } from './machine-pod.ts'

const options: PodOptions = {
  installation: 'one',
  serverId: 'server-1',
  options: { image: 'machines:1', runtimeClass: undefined, seccompProfile: undefined, cpuRequest: '250m' },
  owners: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'berth', uid: 'u' }],
  diskBytes: 1024 ** 3,
}

test('no container of a machine has a privilege, a token or a root file system that it can write', () => {
  const { spec } = machinePod(machineSpec(), options)

  assert.equal(spec?.hostUsers, false)
  assert.equal(spec?.automountServiceAccountToken, false)
  for (const { securityContext } of [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]) {
    assert.ok((securityContext?.runAsUser ?? 0) > 0)
    assert.equal(securityContext?.runAsNonRoot, true)
    assert.equal(securityContext?.privileged, undefined)
    assert.equal(securityContext?.allowPrivilegeEscalation, false)
    assert.equal(securityContext?.readOnlyRootFilesystem, true)
    assert.deepEqual(securityContext?.capabilities, { drop: ['ALL'] })
  }
})

test('the container of the machine does not see the key of its identity, and cannot write where egress listens', () => {
  const { spec } = machinePod(machineSpec(), options)
  const mounts = spec?.containers[0]?.volumeMounts ?? []

  assert.ok(!mounts.some(({ name }) => name === 'identity'))
  assert.equal(mounts.find(({ name }) => name === 'egress')?.readOnly, true)
  const files = spec?.volumes?.find(({ name }) => name === 'spec')?.secret?.items?.map(({ key }) => key)
  assert.deepEqual(files, ['spec.json'])
})

test('a machine is held to its memory and disk, and belongs to its installation', () => {
  const spec = machineSpec({ memory: '2GiB' })
  const pod = machinePod(spec, options)

  assert.equal(pod.spec?.containers[0]?.resources?.limits?.memory, '2560Mi')
  assert.equal(pod.spec?.volumes?.find(({ name }) => name === 'machine')?.emptyDir?.sizeLimit, '1024Mi')
  assert.deepEqual(pod.metadata?.labels, {
    'app.kubernetes.io/name': 'berth-machine',
    'berth.dev/installation': 'one',
    'berth.dev/machine': spec.id,
    'berth.dev/server': 'server-1',
  })
  assert.equal(pod.metadata?.ownerReferences?.[0]?.name, 'berth')
})

test('a machine with low priority asks for next to nothing of the processor', () => {
  const pod = machinePod(machineSpec({ hasLowPriority: true }), options)

  assert.equal(pod.spec?.containers[0]?.resources?.requests?.cpu, '1m')
})
