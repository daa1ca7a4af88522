import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmod, readFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { after, before, test } from 'node:test'
import { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { ask } from '../../testing/ask.ts'
import { LocalTestbed, runIn } from '../../testing/machines/local-testbed.ts'
import { machineSpec } from '../../testing/machines/machine-spec.ts'
import type { Machine } from '../driver.ts'
import type { LocalDriver } from './local-driver.ts'

const never = new AbortController().signal
const isRoot = process.geteuid?.() === 0

let testbed: LocalTestbed
let driver: LocalDriver
/** Most tests only inspect this shared machine. Each of them says what it leaves there. */
let machine: Machine
let other: Machine

before(async () => {
  // A secret of the host that the machine must not find.
  process.env.BERTH_TEST_SECRET = 'do-not-pass-on'
  testbed = await LocalTestbed.open()
  driver = await testbed.openDriver()
  const spec = machineSpec({ memory: '2GiB', chromePolicy: { HomepageLocation: 'http://home.test/' } })
  ;[machine, other] = await Promise.all([driver.start(spec, never), driver.start(machineSpec(), never)])
})
after(() => testbed.close())

async function shell(script: string, inside = machine): Promise<string> {
  return (await runIn(inside, '/bin/bash', '-c', script)).output.trim()
}

test('gives the agent its configuration', async () => {
  const config = AgentConfig.parse(await ask(machine, '/config'))

  assert.deepEqual(config.viewport, { width: 1280, height: 800, refresh_rate: 60 })
  const folders = await shell(
    `ls -d ${config.home_folder} ${config.run_folder} ${config.chromium_path} && touch ${config.run_folder}/x`,
  )
  assert.equal(folders, [config.home_folder, config.run_folder, config.chromium_path].join('\n'))
})

test('gives the processes no capabilities, and no way to get any', async () => {
  const status = await shell('cat /proc/self/status')

  assert.match(status, /^CapPrm:\t0+$/m)
  assert.match(status, /^CapEff:\t0+$/m)
  assert.match(status, /^CapInh:\t0+$/m)
  assert.match(status, /^CapAmb:\t0+$/m)
  assert.match(status, /^NoNewPrivs:\t1$/m)
  assert.match(status, /^Seccomp:\t2$/m)
  if (isRoot) assert.match(status, /^CapBnd:\t0+$/m)
})

test('runs each machine under its own user, never as root', { skip: !isRoot }, async () => {
  const users = await Promise.all([machine, other].map((each) => shell('id -u; id -g; id -G', each)))

  const [own = '', others = ''] = users
  assert.notEqual(own, others)
  for (const user of users) {
    const [uid, gid, groups] = user.split('\n')
    assert.ok(Number(uid) >= 10_000)
    assert.deepEqual([gid, groups], [uid, uid])
  }
  const outside = await Promise.all((await testbed.processesOf(machine.id)).map(hostUser))
  // Outside, only bubblewrap runs as root: one process that waits, and the first one inside, without capabilities.
  assert.deepEqual(outside.toSorted(), ['0', '0', own.split('\n')[0]])
})

async function hostUser(pid: number): Promise<string | undefined> {
  return /^Uid:\t(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]
}

test('has a named user with its own home and environment', async () => {
  const facts = await shell('id -un; cd; pwd; ls -A; hostname; cat /etc/hostname; env | sort')

  assert.match(facts, /^kernel\n\/home\/kernel\n/)
  assert.doesNotMatch(facts, /do-not-pass-on|BERTH|NODE_|HOSTNAME|SSH/)
  const names = facts.split('\n').flatMap((line) => /^(\w+)=/.exec(line)?.[1] ?? [])
  assert.deepEqual(
    names.filter((name) => !['_', 'SHLVL', 'PWD', 'OLDPWD'].includes(name)),
    ['HOME', 'LANG', 'LOGNAME', 'PATH', 'SHELL', 'USER', 'XDG_RUNTIME_DIR'],
  )
})

test('shows only programs and a few settings of the disk of the host', async () => {
  const [top, etc, secrets] = await Promise.all([
    shell('ls /'),
    shell('ls -A /etc'),
    shell(
      `cat ${testbed.folders.data}/machines/*/machine.log /etc/shadow /root/.bash_history /proc/1/environ /proc/1/mem`,
    ),
  ])

  const allowed = [
    'bin',
    'dev',
    'etc',
    'home',
    'lib',
    'lib32',
    'lib64',
    'libx32',
    'opt',
    'proc',
    'run',
    'sbin',
    'tmp',
    'usr',
    'var',
  ]
  assert.deepEqual(
    top.split('\n').filter((name) => !allowed.includes(name)),
    [],
  )
  for (const name of ['shadow', 'ssh', 'environment', 'sudoers']) assert.ok(!etc.split('\n').includes(name), name)
  assert.equal(
    secrets
      .split('\n')
      .filter((line) => !/No such file|Permission denied|Input\/output error/.test(line))
      .join('\n'),
    '',
  )
})

test('lets a machine write only its own files', async () => {
  const places = [
    '/',
    '/usr/bin',
    '/etc',
    '/etc/chromium/policies/managed',
    '/dev',
    '/opt/berth',
    '/run',
    '/run/berth/egress',
    '/var',
    '/home',
  ]

  const refused = await shell(places.map((place) => `touch ${place}/x 2>/dev/null || echo ${place}`).join('; '))
  const written = await shell(
    'for place in /home/kernel /tmp /dev/shm /run/kernel /var/tmp; do touch $place/x && echo $place; done',
  )

  assert.deepEqual(refused.split('\n'), places)
  assert.deepEqual(written.split('\n'), ['/home/kernel', '/tmp', '/dev/shm', '/run/kernel', '/var/tmp'])
})

test('keeps the files and processes of one machine from the other', async () => {
  await shell('touch /tmp/of-this-machine /home/kernel/of-this-machine')

  const seen = await shell('ls -A /tmp /home/kernel /dev/shm; ps -e -o pid,args', other)

  assert.doesNotMatch(seen, /of-this-machine/)
  assert.doesNotMatch(seen, new RegExp(machine.id))
  const ids = await Promise.all([machine, other].map((each) => shell('cat /etc/machine-id', each)))
  assert.equal(new Set([...ids, await readFile('/etc/machine-id', 'utf8').catch(() => '')]).size, 3)
})

test('inherits no open file of the host', async () => {
  const files = await shell(
    'for agent in $(pgrep -f ^/opt/berth/node); do ls -l /proc/$agent/fd; done | grep -o " -> .*" | sort -u',
  )

  const others = files
    .split('\n')
    .filter(
      (line) => !/-> (anon_inode:|pipe:|socket:|\/dev\/null|.*\/machine\.log$|\/dev\/urandom|\/opt\/berth)/.test(line),
    )
  assert.deepEqual(others, [])
  // The agent's own socket, those of Node.js for this command, and none that leads to another machine or to the server.
  assert.equal(await shell('ls /run/berth'), 'egress')
})

test('reaches only its own network', async () => {
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  const facts = await shell('ip -o address; ip route; ip -6 route; cat /etc/resolv.conf')
  const attempt = await shell(`exec 3<>/dev/tcp/127.0.0.1/${port}`)
  server.close()

  assert.deepEqual(
    [...facts.matchAll(/^\d+: (\S+)\s+inet6? (\S+)/gm)].map(([, name, address]) => `${name} ${address}`),
    ['lo 127.0.0.1/8', 'lo ::1/128', 'eth0 192.0.0.2/29', 'eth0 fd00:6265:7274:68::2/64'],
  )
  assert.match(facts, /^default via 192\.0\.0\.1 dev eth0/m)
  assert.match(facts, /^default via fd00:6265:7274:68::1 dev eth0/m)
  assert.match(facts, /^nameserver 192\.0\.0\.1$/m)
  assert.match(attempt, /Connection refused/)
})

test('reaches egress through a socket that is created in its folder later', async () => {
  const { path, mode } = machine.egressSocket
  const egress = createServer((socket) => socket.end('hello from egress')).listen(path)
  await once(egress, 'listening')
  await chmod(path, mode)

  const { egress_socket } = AgentConfig.parse(await ask(machine, '/config'))
  const heard = await shell(
    `perl -MIO::Socket::UNIX -e 'print IO::Socket::UNIX->new(Peer => "${egress_socket}")->getline'`,
  )

  assert.equal(heard, 'hello from egress')
  assert.equal(
    await shell(`rm -f ${egress_socket} 2>&1; ls ${egress_socket}`).then((text) => text.includes('Read-only')),
    true,
  )
  egress.close()
})

test('gives Chromium the policies of the session', async () => {
  const policies = JSON.parse(await shell('cat /etc/chromium/policies/managed/*'))

  assert.equal(policies.HomepageLocation, 'http://home.test/')
  assert.doesNotMatch(await shell('cat /etc/chromium/policies/managed/*', other), /home\.test/)
})

test('limits shared memory by the memory of the machine', async () => {
  const [large = 0, small = 0] = (
    await Promise.all([machine, other].map((each) => shell('df --output=size /dev/shm | tail -1', each)))
  ).map(Number)

  const gibibyteInKibibytes = 1024 ** 2
  assert.ok(large < 2 * gibibyteInKibibytes, `${large} KiB`)
  assert.ok(small < gibibyteInKibibytes, `${small} KiB`)
})

const skip = process.arch !== 'x64' && 'the numbers of these calls are those of x64'

test('blocks system calls that are used to escape from sandboxes', { skip }, async () => {
  const calls = {
    keyctl: '250, 0, -3, 0',
    add_key: '248, 0, 0, 0, 0, 0',
    ptrace: '101, 16, getppid(), 0, 0',
    process_vm_readv: '310, getppid(), 0, 0, 0, 0, 0',
    mount: '165, 0, 0, 0, 0, 0',
    open_tree: '428, -100, 0, 0',
    bpf: '321, 0, 0, 0',
    perf_event_open: '298, 0, 0, 0, 0, 0',
    open_by_handle_at: '304, 0, 0, 0',
    unshare_mounts: '272, 0x20000',
    clone_with_ipc: '56, 0x08000011, 0, 0, 0, 0',
    type_into_terminal: '16, 0, 0x5412, 0',
    type_into_terminal_in_disguise: '16, 0, 0x100005412, 0',
    vsock: '41, 40, 1, 0',
    packet: '41, 17, 3, 0',
    netfilter: '41, 16, 3, 12',
    io_uring_setup: '425, 1, 0',
  }
  const script = Object.entries(calls).map(
    ([name, call]) => `print "${name}\\n" if syscall(${call}) == -1 && $!{EPERM} + $!{EAFNOSUPPORT} + $!{ENOSYS};`,
  )

  const refused = await runIn(machine, '/usr/bin/perl', '-MErrno', '-e', script.join(''))

  assert.deepEqual(refused.output.trim().split('\n'), Object.keys(calls))
})

test('permits the system calls that the sandbox of Chromium needs', { skip }, async () => {
  const calls = {
    unshare_user: '272, 0x10000000',
    route_socket: '41, 16, 3, 0',
    inet_socket: '41, 2, 1, 0',
    terminal_size: '16, 0, 0x5413, 0',
  }
  const script = Object.entries(calls).map(
    ([name, call]) => `syscall(${call}); print "${name}\\n" unless $!{EPERM} + $!{EAFNOSUPPORT} + $!{ENOSYS}; $! = 0;`,
  )

  const passed = await runIn(machine, '/usr/bin/perl', '-MErrno', '-e', script.join(''))

  assert.deepEqual(passed.output.trim().split('\n'), Object.keys(calls))
})

test('runs Chromium with its own sandbox around its pages', { timeout: 90_000 }, async () => {
  const { output } = await runIn(machine, '/opt/berth/node', '--input-type=module', '-e', lookAtChromium)
  const { renderers, own, isOnline } = JSON.parse(output) as {
    renderers: ProcessView[]
    own: ProcessView
    isOnline: boolean
  }

  assert.ok(renderers.length > 0)
  for (const { filters, user, network } of renderers) {
    assert.ok(filters > own.filters, 'Chromium adds a filter of its own to that of the machine')
    assert.notEqual(user, own.user)
    assert.notEqual(network, own.network)
  }
  assert.equal(isOnline, true)
})

interface ProcessView {
  readonly filters: number
  readonly user: string
  readonly network: string
}

/** Runs in the machine: opens a page and inspects its renderer processes. */
const lookAtChromium = `
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
const switches = ['--headless', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update',
  '--user-data-dir=/home/kernel/profile', '--remote-debugging-pipe', 'about:blank']
const chromium = spawn('/usr/lib/chromium/chromium', switches, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] })
const waiting = new Map()
let rest = '', lastId = 0
chromium.stdio[4].on('data', (chunk) => {
  const messages = (rest + chunk).split('\\0')
  rest = messages.pop()
  for (const message of messages.map((text) => JSON.parse(text))) waiting.get(message.id)?.(message.result)
})
const call = (method, params, sessionId) => new Promise((resolve) => {
  waiting.set(++lastId, resolve)
  chromium.stdio[3].write(JSON.stringify({ id: lastId, method, params, sessionId }) + '\\0')
})
const view = (pid) => ({
  filters: Number(/^Seccomp_filters:\\t(\\d+)/m.exec(readFileSync('/proc/' + pid + '/status', 'utf8'))[1]),
  user: readlinkSync('/proc/' + pid + '/ns/user'),
  network: readlinkSync('/proc/' + pid + '/ns/net'),
})
const commandLine = (pid) => { try { return readFileSync('/proc/' + pid + '/cmdline', 'utf8').replaceAll('\\0', ' ') } catch { return '' } }
const { targetId } = await call('Target.createTarget', { url: 'about:blank' })
const { sessionId } = await call('Target.attachToTarget', { targetId, flatten: true })
const { result } = await call('Runtime.evaluate', { expression: 'navigator.onLine' }, sessionId)
const own = view('self')
const look = () => readdirSync('/proc').filter((name) => /^\\S*chromium .*--type=renderer/.test(commandLine(name))).map(view)
// A renderer that Chromium keeps in reserve locks itself in some time after its start.
let renderers = look()
for (let wait = 0; wait < 300 && renderers.some(({ filters }) => filters === own.filters); wait++) {
  await new Promise((resolve) => setTimeout(resolve, 100))
  renderers = look()
}
console.log(JSON.stringify({ renderers, own, isOnline: result.value }))
chromium.kill('SIGKILL')
`
