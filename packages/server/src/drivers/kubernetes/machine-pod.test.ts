import assert from 'node:assert/strict'
import { test } from 'node:test'
import { machineSpec } from '../../testing/machines/machine-spec.ts'
import { machinePod, type PodOptions } from './machine-pod.ts'

const options: PodOptions = {
  installation: 'one',
  serverId: 'server-1',
  options: {
    image: 'machines:1',
    runtimeClass: undefined,
    seccompProfile: undefined,
    cpuRequest: '250m',
    memoryRequestMiB: undefined,
  },
  owners: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'berth', uid: 'u' }],
  diskBytes: 1024 ** 3,
  canResize: true,
}

test('no container of a machine has a privilege, a token or a writable root file system', () => {
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

test('a machine has limits of memory and disk, and belongs to its installation', () => {
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

test('a waiting machine requests little, if that can be raised while it runs', () => {
  const requestsOf = (changes: Partial<PodOptions>) =>
    machinePod(machineSpec({ memory: '2GiB', hasLowPriority: true }), { ...options, ...changes }).spec?.containers[0]
      ?.resources?.requests

  assert.deepEqual(requestsOf({}), { cpu: '1m', memory: '256Mi' })
  assert.deepEqual(requestsOf({ canResize: false }), { cpu: '250m', memory: '2560Mi' })
})

test('a machine requests as much memory as it may use, or what the operator plans with', () => {
  const memoryOf = (memory: '1GiB' | '8GiB', memoryRequestMiB: number | undefined) =>
    machinePod(machineSpec({ memory }), { ...options, options: { ...options.options, memoryRequestMiB } }).spec
      ?.containers[0]?.resources?.requests?.memory

  assert.deepEqual([memoryOf('8GiB', undefined), memoryOf('8GiB', 1024)], ['8704Mi', '1024Mi'])
  assert.deepEqual([memoryOf('1GiB', undefined), memoryOf('1GiB', 4096)], ['1536Mi', '1536Mi'])
})
