import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ownGroups } from './cgroup-hierarchies.ts'

test('finds the one group of a host with version 2', () => {
  const mounts = '29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate'

  const groups = ownGroups(mounts, '0::/system.slice/berth.service\n')

  assert.deepEqual(groups, [
    { version: 2, mount: '/sys/fs/cgroup', path: '/system.slice/berth.service', controllers: [] },
  ])
})

test('finds a group in each hierarchy of version 1, and in that of version 2 beside them', () => {
  const mounts = [
    '35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory',
    '36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct',
    '41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw',
    '22 20 0:21 / /proc rw,nosuid - proc proc rw',
  ].join('\n')

  const groups = ownGroups(mounts, '4:memory:/a:b\n2:cpu,cpuacct:/\n1:name=systemd:/\n0::/\n')

  assert.deepEqual(
    groups.map(({ mount, path }) => [mount, path]),
    [
      ['/sys/fs/cgroup/memory', '/a:b'],
      ['/sys/fs/cgroup/cpu,cpuacct', '/'],
      ['/sys/fs/cgroup/unified', '/'],
    ],
  )
})

test('sees a container’s part of a hierarchy as the container mounts it', () => {
  const mounts = '35 31 0:32 /docker/1f /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory'

  assert.deepEqual(
    ownGroups(mounts, '4:memory:/docker/1f').map(({ path }) => path),
    ['/'],
  )
  assert.deepEqual(
    ownGroups(mounts, '4:memory:/docker/1f/inner').map(({ path }) => path),
    ['/inner'],
  )
  assert.deepEqual(
    ownGroups(mounts, '4:memory:/docker/1f2').map(({ path }) => path),
    [],
  )
})
