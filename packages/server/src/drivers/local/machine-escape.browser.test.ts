import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { LocalTestbed, runIn } from '../../testing/machines/local-testbed.ts'
import { machineSpec } from '../../testing/machines/machine-spec.ts'
import type { Machine } from '../driver.ts'
import type { LocalDriver } from './local-driver.ts'
import { machineFolders } from './machine-folders.ts'

/*
 * Attacks from inside, by child processes of a machine's first program: with its user, its limits and its system call
 * filter. machine-isolation.browser.test.ts describes the normal behaviour of a machine.
 */

const never = new AbortController().signal
const isRoot = process.geteuid?.() === 0
const isX64 = process.arch === 'x64'

let testbed: LocalTestbed
let driver: LocalDriver
let machine: Machine

before(async () => {
  testbed = await LocalTestbed.open()
  driver = await testbed.openDriver()
  machine = await driver.start(machineSpec(), never)
})
after(() => testbed.close())

async function shell(script: string, inside = machine): Promise<string> {
  return (await runIn(inside, '/bin/bash', '-c', script)).output.trim()
}

/** Returns the scripts that succeed. */
async function succeeding(scripts: readonly string[], prefix = ''): Promise<readonly string[]> {
  const runs = await Promise.all(
    scripts.map((script) => runIn(machine, '/bin/bash', '-c', prefix ? `${prefix} '${script}'` : script)),
  )
  return scripts.filter((_script, index) => runs[index]?.exitCode === 0)
}

test('setuid programs give nobody root', async () => {
  const found = await shell('find /usr -perm -4000 -type f 2>/dev/null')
  const made = await shell('cp /usr/bin/id /tmp/id && chmod 6755 /tmp/id && /tmp/id -u; id -u')
  const switched = await shell('su -c id root; mount --bind /tmp /home/kernel; newgrp root < /dev/null; id')

  assert.match(found, /\/su$/m, 'there are such programs')
  const [own, real] = made.split('\n')
  assert.equal(own, real)
  assert.doesNotMatch(switched, /uid=0|gid=0|groups=0/)
})

test('only harmless devices exist, and none can be created', async () => {
  const devices = await shell(`ls -l /dev | awk '/^[bc]/ { print $NF }'`)
  const made = await succeeding(['mknod /tmp/disk b 8 0', 'mknod /tmp/memory c 1 1', 'mknod /tmp/null c 1 3'])
  const opened = await succeeding(
    ['/dev/mem', '/dev/kmsg', '/dev/sda', '/dev/vda', '/dev/fuse', '/dev/kvm'].map((path) => `head -c1 ${path}`),
  )

  assert.deepEqual(devices.split('\n'), ['full', 'null', 'random', 'tty', 'urandom', 'zero'])
  assert.deepEqual([...made, ...opened], [])
})

test('settings of the kernel cannot be changed, and its memory cannot be read', async () => {
  const files = [
    ...[
      'kernel/core_pattern',
      'kernel/hostname',
      'kernel/ns_last_pid',
      'vm/drop_caches',
      'net/ipv4/ip_forward',
      'fs/file-max',
      'user/max_user_namespaces',
    ].map((name) => `/proc/sys/${name}`),
    ...[
      '/proc/sysrq-trigger',
      '/proc/irq/default_smp_affinity',
      '/proc/1/mem',
      '/proc/1/uid_map',
      '/proc/1/attr/current',
    ],
  ]
  const written = await succeeding(files.map((file) => `echo 1 > ${file}`))
  const read = await succeeding(['head -c1 /proc/kcore', 'head -c1 /proc/kmsg', 'ls /sys/kernel', 'ls /sys/fs/cgroup'])
  const addresses = await shell(`awk '$1 !~ /^0+$/' /proc/kallsyms | head -1`)

  assert.deepEqual([...written, ...read], [])
  assert.equal(addresses, '')
})

// Without root, berth has the same user as all processes in the machine, and ends with them.
const firstIsRoots = { skip: !isRoot && 'the first process belongs to the same user' }

test('the first process cannot be signalled or traced', firstIsRoots, async () => {
  const done = await succeeding([
    'kill -9 1',
    'kill -STOP 1',
    'cat /proc/1/environ',
    'cat /proc/1/maps',
    'ls /proc/1/root/',
    'ls /proc/1/cwd/',
    'ls /proc/1/fd/',
    'echo 1 > /proc/1/oom_score_adj',
    'renice -n -5 $$',
    'prlimit --pid 1 --nofile=1',
    'echo -500 > /proc/self/oom_score_adj',
    'chrt -f 1 true',
  ])

  assert.deepEqual(done, [])
  assert.equal(await shell('echo alive'), 'alive')
})

test('a user namespace, which Chromium needs, gives no rights outside of it', async () => {
  const scripts = [
    ...[
      'mount -t tmpfs none /tmp',
      'mount --bind /tmp /home',
      'mount -t proc none /proc',
      'mount -o remount,rw /',
      'umount /etc/hosts',
      'pivot_root /tmp /tmp',
    ],
    ...[
      'mknod /tmp/disk b 8 0',
      'hostname owned',
      'echo 1 > /proc/sys/kernel/core_pattern',
      'echo x > /etc/passwd',
      'chown 0 /usr/bin',
      'touch /root-was-here',
    ],
    ...[
      'unshare --mount true',
      'unshare --ipc true',
      'unshare --uts true',
      'unshare --cgroup true',
      'nsenter --target 1 --net true',
      'nsenter --net=/proc/1/ns/net true',
    ],
    ...['dmesg', 'swapoff -a', 'date -s 2000-01-01'],
  ]

  const outcome = await succeeding(scripts, 'unshare --user --map-root-user --net --pid --fork bash -c')
  const isRootThere = await shell('unshare --user --map-root-user --net id -u')
  const mapped = await succeeding(['unshare --user --map-users=0,0,1 true', 'unshare --user --map-users=0,1,1000 true'])

  // It may change settings only of the network that it created itself. A host that forwards, as one with Docker does, has
  // networks that begin with 1.
  const forwards = await shell('cat /proc/sys/net/ipv4/ip_forward')
  const other = forwards === '0' ? '1' : '0'
  await shell(`unshare --user --map-root-user --net sh -c "echo ${other} > /proc/sys/net/ipv4/ip_forward"`)
  assert.equal(await shell('cat /proc/sys/net/ipv4/ip_forward'), forwards)
  assert.equal(isRootThere, '0')
  assert.deepEqual([...outcome, ...mapped], [])
})

test('a user namespace cannot install packet filters', {
  skip: !isX64 && 'the numbers are those of x64',
}, async () => {
  // IPT_SO_SET_REPLACE, IP6T_…, ARPT_… and EBT_…, on the sockets that accept them.
  const attempts = [
    [2, 0, 64],
    [2, 0, 65],
    [10, 41, 64],
    [2, 0, 96],
    [2, 0, 128],
  ]
  const script = attempts.map(
    ([family, level, option]) =>
      `socket($socket, ${family}, 3, 255) or die "no socket: $!"; $! = 0; $value = "\\0" x 96; syscall(54, fileno($socket), ${level}, ${option}, $value, 96); print "${level}/${option}: $!\\n" unless $!{EPERM};`,
  )

  const { output, exitCode } = await runIn(
    machine,
    '/usr/bin/unshare',
    '--user',
    '--map-root-user',
    '--net',
    '/usr/bin/perl',
    '-MErrno',
    '-e',
    script.join(''),
  )

  assert.deepEqual([exitCode, output], [0, ''])
})

test('links resolve only within the view of the machine', async () => {
  const secret = join(testbed.folders.data, 'master-key')
  await writeFile(secret, 'secret of the host')
  const folders = machineFolders(testbed.folders, machine.id)

  await shell(
    `ln -s ${secret} /tmp/key; ln -s /etc/shadow /home/kernel/shadow; ln -s ${folders.data} /tmp/own; ln -s / /tmp/root; ln -s /proc/1/root /tmp/first`,
  )
  const seen = await shell(
    'cat /tmp/key /home/kernel/shadow /tmp/own/agent.json /tmp/root/etc/shadow /tmp/first/etc/shadow; cat ../../../../..' +
      secret,
  )

  assert.deepEqual(
    seen.split('\n').filter((line) => !/No such file|Permission denied/.test(line)),
    [],
  )
})

test('a child process inherits no open file of the host', async () => {
  const files = (await shell('ls -l /proc/self/fd'))
    .split('\n')
    .flatMap((line) => / (\d+) -> (.*)$/.exec(line)?.slice(1).join(' ') ?? [])

  const others = files.filter((file) => !/^[0-2] (pipe:|socket:|\/dev\/null)|\/proc\/\d+\/fd$/.test(file))
  assert.deepEqual(others, [])
})

test('only files of a machine are removed, however deep, protected or linked', {
  timeout: 60_000,
}, async () => {
  const doomed = await driver.start(machineSpec(), never)
  const { data, runtime } = machineFolders(testbed.folders, doomed.id)
  const bystander = await mkdtemp(join(tmpdir(), 'berth-bystander-'))
  await writeFile(join(bystander, 'file'), 'must stay')
  // Deeper than a path can express: system calls accept at most 4,096 bytes.
  const dig = `cd /home/kernel && for i in $(seq 60); do mkdir ${'d'.repeat(200)} && cd ${'d'.repeat(200)} || exit; done; touch bottom; ln -s ${bystander} out`
  const close = `mkdir -p /tmp/closed/inner && touch /tmp/closed/inner/x && ln -s ${bystander} /tmp/closed/inner/out && chmod 0 /tmp/closed/inner /tmp/closed`
  const strange = `ln -s ${bystander} /tmp/link; ln -s ${bystander}/file /home/kernel/-rf; mkfifo /tmp/fifo; touch -- $'/tmp/new\\nline' '/tmp/--no-preserve-root' $'/tmp/\\xff\\xfe'; ln -s loop /tmp/loop`
  for (const script of [dig, close, strange]) assert.equal(await shell(script, doomed), '')
  // Simulates a folder that was replaced by a link meanwhile.
  await rm(join(data, 'policies'), { recursive: true })
  await symlink(bystander, join(data, 'policies'))

  await driver.stop(doomed.id)

  assert.deepEqual(await readdir(bystander), ['file'])
  for (const folder of [data, runtime]) await assert.rejects(readdir(folder), { code: 'ENOENT' })
  await rm(bystander, { recursive: true })
})

test('a machine cannot change its control groups', {
  skip: !isRoot && 'groups are made by root',
}, async () => {
  const groups = await shell('cat /proc/self/cgroup')
  const pids = await testbed.processesOf(machine.id)
  const seen = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '')))

  for (const line of groups.split('\n'))
    assert.match(line, /:\/(\.\.)*$|:\/$|:.*:\/\.\.\//, 'the machine does not see where its groups are')
  assert.ok(seen.every((text) => text.includes(machine.id)))
})
