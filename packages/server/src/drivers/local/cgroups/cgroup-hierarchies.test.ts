import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, rmdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { exists } from '@berth/runtime/files/exists.ts'
import { Cgroups, type Hierarchy } from './cgroups.ts'
import { groupsOf, ownGroups } from './own-groups.ts'

const run = promisify(execFile)

test('finds the group of a host with version 2', () => {
  const mounts = '29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate'

  const groups = ownGroups(mounts, '0::/system.slice/berth.service\n')

  assert.deepEqual(groups, [
    { version: 2, mount: '/sys/fs/cgroup', path: '/system.slice/berth.service', controllers: [] },
  ])
})

test('finds a group in each hierarchy of version 1, and in an additional one of version 2', () => {
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

test('finds the part of a hierarchy that a container has mounted', () => {
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

const unified = (await groupsOf('self')).find(({ version }) => version === 2)
const isPrepared = process.geteuid?.() === 0 && unified !== undefined

/** Runs a program in a new group of version 2, alone or with another process, and returns its result. */
async function findIn(context: TestContext, isAlone: boolean) {
  assert.ok(unified)
  const group = { ...unified, path: join(unified.path, `berth-test-${randomUUID()}`) }
  const folder = join(group.mount, group.path)
  await mkdir(folder)
  const script = `
    const { hierarchyV2 } = await import('${new URL('cgroup-hierarchies.ts', import.meta.url)}')
    const { readFileSync } = await import('node:fs')
    const found = await hierarchyV2(JSON.parse(process.argv[1]), ['freezer'])
    console.log(JSON.stringify({ found, own: readFileSync('/proc/self/cgroup', 'utf8') }))`
  const sleeper = isAlone ? undefined : spawn('/bin/sleep', ['1000'])
  if (sleeper) await writeFile(join(folder, 'cgroup.procs'), String(sleeper.pid))
  const enter = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
  const args = ['-c', enter, folder, process.execPath, '--input-type=module', '-e', script, JSON.stringify(group)]
  const { stdout } = await run('/bin/sh', args)
  context.after(async () => {
    sleeper?.kill('SIGKILL')
    if (sleeper) await once(sleeper, 'exit')
    await rmdir(join(folder, 'berth-server')).catch(() => {})
    await rmdir(folder)
  })
  return { group, folder, ...(JSON.parse(stdout) as { found: Hierarchy; own: string }) }
}

test('in its own group, berth moves into a subgroup, and machines get groups next to it', {
  skip: !isPrepared,
}, async (context) => {
  const { group, folder, found, own } = await findIn(context, true)

  assert.equal(found.folder, folder)
  assert.match(own, new RegExp(`^0::.*${group.path}/berth-server$`, 'm'))
})

test('a group with other processes is not changed', { skip: !isPrepared }, async (context) => {
  const { group, folder, found, own } = await findIn(context, false)

  assert.equal(found.folder, dirname(folder))
  assert.match(own, new RegExp(`^0::.*${group.path}$`, 'm'))
})

test('finds the groups of a machine in any group of the server that started it', {
  skip: !isPrepared,
}, async (context) => {
  const [folder, name] = [join(unified?.mount ?? '', unified?.path ?? '', randomUUID()), randomUUID()]
  const group = join(folder, `berth-${name}`)
  await mkdir(group, { recursive: true })
  const machine = spawn('/bin/sleep', ['1000'])
  context.after(async () => {
    await rmdir(folder)
  })
  await writeFile(join(group, 'cgroup.procs'), String(machine.pid))
  const cgroups = new Cgroups([{ version: 2, folder: dirname(folder), controllers: ['freezer'] }], 'berth')

  await cgroups.locate(name, machine.pid ?? 0)

  assert.deepEqual(await cgroups.listProcesses(name), [machine.pid])
  machine.kill('SIGKILL')
  await once(machine, 'exit')
  await cgroups.remove(name)
  assert.equal(await exists(group), false)
})
