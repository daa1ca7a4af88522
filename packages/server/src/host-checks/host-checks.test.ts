import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { judgeCgroups, judgeDisk, judgeFreezer, judgeStandbyMemory } from './bound-checks.ts'
import { hostChecks, judgeNode, runHostChecks } from './host-checks.ts'
import { judgeNamespaces } from './namespace-checks.ts'
import { judgeNetwork, networkCheck } from './network-check.ts'
import { judgeProgram, neededPrograms } from './program-checks.ts'
import {
  judgeDataFolder,
  judgeFonts,
  judgeMemory,
  judgeOpenFiles,
  judgePort,
  judgeProcesses,
  judgeReserve,
  judgeSharedMemory,
  parseLimit,
} from './resource-checks.ts'
import { installCommand, notInstalled, systemPackages } from './system-packages.ts'

const mebibyte = 1024 * 1024
const bubblewrap = neededPrograms.find(({ program }) => program === 'bwrap')
assert.ok(bubblewrap)
const forbidden = {
  hasSucceeded: false,
  output: 'unshare: Operation not permitted\nmore',
  switches: {},
  isContainer: false,
}

test('Node.js must be 24 or newer', () => {
  assert.equal(judgeNode('24.0.0').state, 'ok')
  assert.equal(judgeNode('26.1.2').state, 'ok')
  assert.equal(judgeNode('22.99.0').state, 'failure')
})

test('the version of a program is the first version number that it prints', () => {
  assert.deepEqual(judgeProgram(bubblewrap, 'bubblewrap 0.8.0'), { state: 'ok', fact: '0.8.0' })
})

test('a missing, broken or old program is a failure that names the package to install', () => {
  const cure = 'apt-get install -y --no-install-recommends bubblewrap'

  assert.deepEqual(judgeProgram(bubblewrap, undefined), { state: 'failure', fact: 'bwrap is missing', cure })
  assert.deepEqual(judgeProgram(bubblewrap, 'cannot load libcap\nbye'), {
    state: 'failure',
    fact: 'bwrap does not run: cannot load libcap',
    cure,
  })
  assert.deepEqual(judgeProgram(bubblewrap, 'bubblewrap 0.6.1'), {
    state: 'failure',
    fact: 'bwrap is 0.6.1; berth needs 0.7 or newer',
    cure,
  })
})

test('a missing program that serve does not require is a warning', () => {
  const ffmpeg = neededPrograms.find(({ program }) => program === 'ffmpeg')
  assert.ok(ffmpeg)

  assert.equal(judgeProgram(ffmpeg, undefined).state, 'warning')
})

test('every program belongs to a package that setup installs', () => {
  const names = systemPackages.map(({ name }) => name)

  for (const needed of neededPrograms) assert.ok(names.includes(needed.package), needed.package)
})

test('the network of a session can be created here, and a failure is reported with its fix', async () => {
  const cureOf = (output: string, isContainer = false) =>
    Object(judgeNetwork({ hasSucceeded: false, output, isContainer })).cure

  assert.deepEqual(await networkCheck.run(), { state: 'ok', fact: 'can be made' })
  assert.equal(cureOf('unshare is missing'), './berth setup')
  assert.equal(cureOf('/bin/sh: 2: nft: not found\nmore'), './berth setup')
  assert.match(cureOf('net/ipv4/conf/all/rp_filter: Read-only file system'), /systempaths=unconfined/)
  assert.match(cureOf('unshare: unshare failed: Operation not permitted'), /user namespaces/)
  assert.match(cureOf('Error: Unknown device type.'), /^sudo modprobe -a veth .*nft_tproxy/)
  assert.match(cureOf('Could not process rule: No such file or directory', true), /on the host of the container/)
})

test('forbidden namespaces are reported with the setting that forbids them', () => {
  const cureOf = (facts: Partial<typeof forbidden>) => Object(judgeNamespaces({ ...forbidden, ...facts })).cure

  assert.match(
    cureOf({ switches: { 'kernel.unprivileged_userns_clone': '0' } }),
    /kernel\.unprivileged_userns_clone=1 /,
  )
  assert.match(cureOf({ switches: { 'user.max_user_namespaces': '0' } }), /user\.max_user_namespaces=15000 /)
  const apparmor = { 'kernel.apparmor_restrict_unprivileged_userns': '1' }
  assert.match(cureOf({ switches: apparmor }), /kernel\.apparmor_restrict_unprivileged_userns=0 /)
  const inContainer = cureOf({ isContainer: true })
  assert.match(inContainer, /--security-opt seccomp=deploy\/docker\/seccomp.json .*systempaths=unconfined$/)
  assert.match(cureOf({ isContainer: true, switches: apparmor }), /on the host of the container: .*_userns=0 /)
  assert.match(cureOf({}), /kernel or security module/)
})

test('a namespace failure quotes the first line of the error', () => {
  assert.equal(judgeNamespaces(forbidden).fact, 'not allowed: unshare: Operation not permitted')
  assert.equal(judgeNamespaces({ ...forbidden, hasSucceeded: true, output: '' }).state, 'ok')
})

test('sessions without limits are a warning, not a failure', () => {
  const hierarchies = [{ version: 1 }, { version: 2 }] as const

  assert.deepEqual(judgeCgroups(['memory', 'processes', 'share of the processor'], hierarchies), {
    state: 'ok',
    fact: 'v1 and v2, a session has limits of memory, processes, share of the processor',
  })
  assert.deepEqual(judgeCgroups(['memory'], hierarchies).state, 'warning')
  assert.match(judgeCgroups(['memory'], hierarchies).fact, /^processes of a session/)
  assert.match(judgeCgroups([], []).fact, /^memory and processes of a session/)
  assert.match(Object(judgeCgroups([], [], true)).cure, /^limit the container/)
})

test('sessions without a file system of their own are a warning that says what happens instead', () => {
  assert.equal(judgeDisk(undefined).state, 'ok')
  assert.equal(judgeDisk('mkfs.ext4 is missing').state, 'warning')
  assert.match(judgeDisk('mkfs.ext4 is missing').fact, /^mkfs\.ext4 is missing: .* is ended/)
})

test('memory is measured in sessions', () => {
  assert.equal(judgeMemory(300 * mebibyte).state, 'failure')
  assert.equal(judgeMemory(1000 * mebibyte).state, 'warning')
  assert.deepEqual(judgeMemory(4000 * mebibyte), {
    state: 'ok',
    fact: '4000 MiB available, room for about 10 sessions',
  })
})

test('small or missing shared memory is reported', () => {
  assert.equal(judgeSharedMemory(undefined).state, 'failure')
  assert.equal(judgeSharedMemory(16 * mebibyte).state, 'warning')
  assert.equal(judgeSharedMemory(64 * mebibyte).state, 'ok')
})

test('limits are the hard limits, to which Node.js raises its own', () => {
  const limits = [
    'Limit                     Soft Limit           Hard Limit           Units     ',
    'Max processes             4096                 unlimited            processes ',
    'Max open files            1024                 524288               files     ',
  ].join('\n')

  assert.equal(parseLimit(limits, 'Max open files'), 524_288)
  assert.equal(parseLimit(limits, 'Max processes'), Number.POSITIVE_INFINITY)
})

test('low limits of files and processes fail, and moderate ones warn', () => {
  for (const judge of [judgeOpenFiles, judgeProcesses]) {
    assert.deepEqual(
      [1000, 4096, 65_536].map((limit) => judge(limit).state),
      ['failure', 'warning', 'ok'],
    )
  }
})

test('a data folder must be writable and have free space', () => {
  const judge = (isWritable: boolean, free: number) =>
    judgeDataFolder('/data/berth', { nearest: '/data', isWritable, freeBytes: free * mebibyte })

  assert.deepEqual(judge(false, 9999), {
    state: 'failure',
    fact: '/data cannot be written',
    cure: 'name another folder with --data-dir',
  })
  assert.deepEqual(
    [100, 1000, 5000].map((free) => judge(true, free).state),
    ['failure', 'warning', 'ok'],
  )
})

test('each error of a port has a specific fix', () => {
  const cureOf = (state: string) => Object(judgePort('10.0.0.9', 80, state)).cure

  assert.equal(judgePort('127.0.0.1', 8080, 'free').state, 'ok')
  assert.equal(judgePort('127.0.0.1', 8080, 'berth').state, 'ok')
  assert.equal(cureOf('EADDRINUSE'), './berth serve --port 0')
  assert.equal(cureOf('EACCES'), './berth serve --port 8080')
  assert.equal(cureOf('EADDRNOTAVAIL'), './berth serve --host 127.0.0.1')
})

test('missing fonts are named with the command that installs them', () => {
  const verdict = judgeFonts(['ffmpeg', 'fonts-noto-cjk'])

  assert.equal(verdict.state, 'warning')
  assert.equal(Object(verdict).cure, 'apt-get install -y --no-install-recommends fonts-noto-cjk')
  assert.equal(judgeFonts(['ffmpeg']).state, 'ok')
  assert.equal(judgeFonts(undefined).state, 'ok')
})

test('packages that are not installed according to dpkg are missing, including half-installed and removed ones', () => {
  const everything = systemPackages.map(({ name }) => `ii  ${name}`)
  const lines = everything.map((line) => line.replace('ii  ffmpeg', 'iF  ffmpeg').replace('ii  xclip', 'rc  xclip'))

  assert.deepEqual(notInstalled(everything.join('\n')), [])
  assert.deepEqual(
    notInstalled(lines.join('\n')).map(({ name }) => name),
    ['ffmpeg', 'xclip'],
  )
  assert.deepEqual(notInstalled(''), systemPackages)
})

test('the install command names exactly the packages', () => {
  const [first, second] = systemPackages
  assert.ok(first && second)

  assert.equal(
    installCommand([first, second]),
    `apt-get install -y --no-install-recommends ${first.name} ${second.name}`,
  )
})

async function startServer(listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { port, [Symbol.asyncDispose]: () => new Promise<void>((resolve) => void server.close(() => resolve())) }
}

async function checkPort(port: number) {
  const check = hostChecks.find(({ name }) => name === 'Port')
  assert.ok(check)
  return await check.run({ host: '127.0.0.1', port, dataFolder: '/tmp', reserve: 'off' })
}

test('a port of another program fails, and a port of berth does not', async () => {
  await using other = await startServer((_request, response) => void response.end('hello'))
  await using berth = await startServer((_request, response) => void response.end('{"driver":"ok","egress":"ok"}'))

  assert.equal((await checkPort(other.port)).state, 'failure')
  assert.equal((await checkPort(berth.port)).state, 'ok')
  assert.equal((await checkPort(0)).state, 'ok')
})

test('every check of this host returns a finding', async () => {
  const findings = await runHostChecks({ host: '127.0.0.1', port: 0, dataFolder: '/tmp', reserve: 'off' })

  assert.deepEqual(
    findings.map(({ name }) => name),
    hostChecks.map(({ name }) => name),
  )
  for (const { name, verdict } of findings) assert.ok(verdict.fact, name)
})

test('the reserve is reported with its sizes, or the reason why there is none', () => {
  assert.match(judgeReserve('off', 16_000 * mebibyte).fact, /^off/)
  assert.match(judgeReserve('auto', 16_000 * mebibyte).fact, /^1 headless, 1 headful, and more/)
  assert.match(judgeReserve('auto', 1_000 * mebibyte).fact, /less than 4 GiB/)
  assert.equal(judgeReserve({ headless: 2 }, 1_000 * mebibyte).fact, '2 headless')
})

test('sessions are frozen with and without a control group', () => {
  assert.match(judgeFreezer(true).fact, /control group/)
  assert.match(judgeFreezer(false).fact, /signals/)
})

test('the memory of frozen sessions is reclaimed, or the reason is reported', () => {
  assert.match(judgeStandbyMemory(undefined).fact, /^sessions that are frozen .* give their memory back/)
  assert.match(judgeStandbyMemory('no swap').fact, /^stays .* no swap/)
  assert.match(judgeStandbyMemory('no support').fact, /^stays .* kernel/)
  assert.match(judgeStandbyMemory('no control group').fact, /^stays .* control group/)
})
