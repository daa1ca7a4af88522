import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seccompFilter } from './seccomp-filter.ts'

const allow = 0x7fff_0000
const refused = (errno: number) => 0x0005_0000 | errno
const [EPERM, ENOSYS, EAFNOSUPPORT, killed] = [refused(1), refused(38), refused(97), 0x8000_0000]
const architectureIds = { x64: 0xc000_003e, arm64: 0xc000_00b7 } as const

interface Call {
  readonly architecture?: number
  readonly number: number
  readonly args?: readonly number[]
}

/** Interprets the program like the kernel, for the few instructions that it uses. */
function verdict(name: 'x64' | 'arm64', { architecture = architectureIds[name], number, args = [] }: Call): number {
  const program = seccompFilter(name)
  assert.ok(program)
  const view = new DataView(program.buffer)
  let loaded = 0
  for (let position = 0; position < program.length; position += 8) {
    const [code, value] = [view.getUint16(position, true), view.getUint32(position + 4, true)]
    const skip = (holds: boolean) => view.getUint8(position + (holds ? 2 : 3)) * 8
    if (code === 0x06) return value
    if (code === 0x20) loaded = value === 0 ? number : value === 4 ? architecture : (args[(value - 16) / 8] ?? 0)
    else if (code === 0x15) position += skip(loaded === value)
    else if (code === 0x25) position += skip(loaded > value)
    else if (code === 0x35) position += skip(loaded >= value)
    else if (code === 0x45) position += skip((loaded & value) !== 0)
    else assert.fail(`instruction ${code} at ${position}`)
  }
  assert.fail('the program ends without a verdict')
}

test('permits ordinary calls on both architectures', () => {
  const [read, write, execve] = [
    { x64: 0, arm64: 63 },
    { x64: 1, arm64: 64 },
    { x64: 59, arm64: 221 },
  ]

  for (const call of [read, write, execve]) {
    assert.equal(verdict('x64', { number: call.x64 }), allow)
    assert.equal(verdict('arm64', { number: call.arm64 }), allow)
  }
})

test('denies mounts, keys and foreign processes on both architectures', () => {
  for (const number of [165, 250, 101]) assert.equal(verdict('x64', { number }), EPERM)
  for (const number of [40, 219, 117]) assert.equal(verdict('arm64', { number }), EPERM)
})

test('ends a program that uses the calls of another architecture', () => {
  assert.equal(verdict('x64', { architecture: 0x4000_0003, number: 21 }), killed)
  assert.equal(verdict('x64', { number: 0x4000_0000 | 165 }), ENOSYS)
})

test('permits only the namespaces that Chromium needs', () => {
  const [mounts, uts, ipc, cgroup, time] = [0x2_0000, 0x400_0000, 0x800_0000, 0x200_0000, 0x80]
  const forChromium = 0x1000_0000 | 0x2000_0000 | 0x4000_0000

  for (const flags of [mounts, uts, ipc, cgroup, time, mounts | forChromium]) {
    assert.equal(verdict('x64', { number: 272, args: [flags] }), EPERM)
  }
  assert.equal(verdict('x64', { number: 272, args: [forChromium] }), allow)
  assert.equal(verdict('x64', { number: 56, args: [forChromium | 17] }), allow)
  assert.equal(verdict('x64', { number: 56, args: [mounts | 17] }), EPERM)
  assert.equal(verdict('x64', { number: 435 }), ENOSYS)
})

test('permits only sockets that programs need and that network namespaces isolate', () => {
  const socket = (family: number, protocol = 0) => verdict('x64', { number: 41, args: [family, 1, protocol] })
  const [unix, inet, inet6, netlink, packet, alg, vsock] = [1, 2, 10, 16, 17, 38, 40]
  const [route, netfilter] = [0, 12]

  for (const family of [unix, inet, inet6]) assert.equal(socket(family, 6), allow)
  for (const family of [packet, alg, vsock]) assert.equal(socket(family), EAFNOSUPPORT)
  assert.equal(socket(netlink, route), allow)
  assert.equal(socket(netlink, netfilter), EAFNOSUPPORT)
})

test('permits socket pairs only of the unix family', () => {
  for (const [name, number] of [
    ['x64', 53],
    ['arm64', 199],
  ] as const) {
    assert.equal(verdict(name, { number, args: [1, 1, 0] }), allow)
    for (const family of [2, 16, 30, 38]) assert.equal(verdict(name, { number, args: [family, 1, 0] }), EAFNOSUPPORT)
  }
})

test('rejects unknown calls like a kernel that lacks them', () => {
  const [clone3, ioUring, statmount, listmount, later] = [435, 425, 457, 458, 470]

  for (const name of ['x64', 'arm64'] as const) {
    for (const number of [clone3, ioUring, statmount, listmount, later, 5_000, 0x3fff_ffff]) {
      assert.equal(verdict(name, { number }), ENOSYS, `${number} on ${name}`)
    }
  }
  // create_module and vserver on x64.
  for (const number of [174, 236]) assert.equal(verdict('x64', { number }), ENOSYS)
})

test('permits reading the personality, but not disabling memory protection', () => {
  const [ask, ordinary, withoutRandomAddresses] = [0xffff_ffff, 0, 0x4_0000]

  assert.equal(verdict('x64', { number: 135, args: [ask] }), allow)
  assert.equal(verdict('x64', { number: 135, args: [ordinary] }), allow)
  assert.equal(verdict('x64', { number: 135, args: [withoutRandomAddresses] }), EPERM)
})

test('permits terminals, but not injecting input', () => {
  const [windowSize, typeInto, typeIntoConsole] = [0x5413, 0x5412, 0x541c]

  assert.equal(verdict('x64', { number: 16, args: [0, windowSize] }), allow)
  assert.equal(verdict('x64', { number: 16, args: [0, typeInto] }), EPERM)
  assert.equal(verdict('x64', { number: 16, args: [0, typeIntoConsole] }), EPERM)
})

test('permits socket options, but no packet filters', () => {
  const [ip, ipv6, tcp] = [0, 41, 6]
  const [replaceTables, replaceArpTables, noDelay, trafficClass] = [64, 96, 1, 67]

  for (const [name, number] of [
    ['x64', 54],
    ['arm64', 208],
  ] as const) {
    for (const level of [ip, ipv6]) {
      assert.equal(verdict(name, { number, args: [3, level, replaceTables] }), EPERM)
      assert.equal(verdict(name, { number, args: [3, level, replaceArpTables] }), EPERM)
    }
    assert.equal(verdict(name, { number, args: [3, tcp, noDelay] }), allow)
    assert.equal(verdict(name, { number, args: [3, ipv6, trafficClass] }), allow)
  }
})

test('has no filter for an unknown architecture', () => {
  assert.equal(seccompFilter('riscv64'), undefined)
})
