import { constants } from 'node:os'
import { allowed, forbidden, type Numbers } from './system-calls.ts'

/*
 * Filters the system calls of a machine. Chromium's own sandbox needs user, pid and network namespaces and chroot, so
 * these stay allowed. Other features of a user namespace (mounts, packet filters, keys) are denied, because most
 * escapes from user namespaces used them. Calls without a known need are denied too. A denied call returns an error
 * code instead of ending the process, so programs that only probe for a feature continue.
 */

interface Architecture {
  /** The architecture in the kernel's filters: `AUDIT_ARCH_…`. */
  readonly id: number
  readonly column: 0 | 1
}

const architectures: Partial<Record<NodeJS.Architecture, Architecture>> = {
  x64: { id: 0xc000_003e, column: 0 },
  arm64: { id: 0xc000_00b7, column: 1 },
}

const clone: Numbers = [56, 220]
const unshare: Numbers = [272, 97]
const ioctl: Numbers = [16, 29]
const socket: Numbers = [41, 198]
const socketpair: Numbers = [53, 199]
const setsockopt: Numbers = [54, 208]
const personality: Numbers = [135, 92]

/**
 * CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS and NEWIPC. NEWTIME shares its bit with clone's exit signal, which does no
 * harm.
 */
const forbiddenNamespaces = 0x0000_0080 | 0x0002_0000 | 0x0200_0000 | 0x0400_0000 | 0x0800_0000
/** TIOCSTI and TIOCLINUX inject input into a terminal. */
const forbiddenTerminalRequests = [0x5412, 0x541c]
/**
 * UNIX, INET and INET6. Others are obsolete or ignore network namespaces: VSOCK reaches the host of a virtual machine.
 */
const allowedSocketFamilies = [1, 2, 10]
const unixFamily = 1
const netlinkFamily = 16
/**
 * NETLINK_ROUTE and NETLINK_KOBJECT_UEVENT, which report networks and devices. The packet filter uses another protocol.
 */
const allowedNetlinkProtocols = [0, 15]
/** SOL_IP and SOL_IPV6, with the options that replace tables and counters of ip, ip6, arp and bridge filters. */
const packetFilterLevels = [0, 41]
const packetFilterOptions = [64, 65, 96, 97, 128, 129]

/**
 * The ordinary ones of 64-bit and 32-bit Linux, with and without the name of an old kernel. The last one queries the
 * current one.
 */
const allowedPersonalities = [0, 8, 0x2_0000, 0x2_0008, 0xffff_ffff]

const load = 0x20
const jumpIfEqual = 0x15
const jumpIfGreater = 0x25
const jumpIfAtLeast = 0x35
const jumpIfSet = 0x45
const finish = 0x06

const allow = 0x7fff_0000
const killProcess = 0x8000_0000
const refuseWith = (errno: number) => 0x0005_0000 | errno

const numberOffset = 0
const architectureOffset = 4
/** The lower half of an argument. The kernel ignores the upper half of every argument that is checked here. */
const argumentOffset = (index: number) => 16 + 8 * index
/** Marks the calls of x32, a second table of x64 that repeats the first one. */
const x32Bit = 0x4000_0000

interface Instruction {
  readonly code: number
  readonly value: number
  /** The number of instructions to skip when the condition is true or false. */
  readonly ifTrue?: number
  readonly ifFalse?: number
}

/** The filter as a program for the kernel. Undefined for an architecture whose calls are not known here. */
export function seccompFilter(name: NodeJS.Architecture): Uint8Array<ArrayBuffer> | undefined {
  const architecture = architectures[name]
  return architecture && assemble(filterOf(architecture))
}

function filterOf({ id, column }: Architecture): readonly Instruction[] {
  const numbersOf = (calls: Readonly<Record<string, Numbers>>) =>
    Object.values(calls).flatMap((numbers) => numbers[column] ?? [])
  const call = (numbers: Numbers) => numbers[column] ?? -1
  const { EPERM, ENOSYS, EAFNOSUPPORT } = constants.errno
  return [
    { code: load, value: architectureOffset },
    // Another architecture numbers the same calls differently and would pass every rule below.
    { code: jumpIfEqual, value: id, ifTrue: 1 },
    { code: finish, value: killProcess },
    { code: load, value: numberOffset },
    { code: jumpIfSet, value: x32Bit, ifFalse: 1 },
    { code: finish, value: refuseWith(ENOSYS) },
    ...numbersOf(forbidden).flatMap((number) => when(number, [{ code: finish, value: refuseWith(EPERM) }])),
    ...when(call(clone), refuseFlags(forbiddenNamespaces & ~0xff)),
    ...when(call(unshare), refuseFlags(forbiddenNamespaces)),
    ...when(call(ioctl), [
      { code: load, value: argumentOffset(1) },
      ...forbiddenTerminalRequests.flatMap((request) => when(request, [{ code: finish, value: refuseWith(EPERM) }])),
      { code: finish, value: allow },
    ]),
    ...when(call(socket), [
      { code: load, value: argumentOffset(0) },
      ...when(netlinkFamily, [
        { code: load, value: argumentOffset(2) },
        ...allowOnly(allowedNetlinkProtocols, EAFNOSUPPORT),
      ]),
      ...allowOnly(allowedSocketFamilies, EAFNOSUPPORT),
    ]),
    ...when(call(socketpair), [{ code: load, value: argumentOffset(0) }, ...allowOnly([unixFamily], EAFNOSUPPORT)]),
    ...when(call(personality), [{ code: load, value: argumentOffset(0) }, ...allowOnly(allowedPersonalities, EPERM)]),
    ...when(call(setsockopt), [
      { code: load, value: argumentOffset(1) },
      ...packetFilterLevels.flatMap((level) => when(level, refusePacketFilters)),
      { code: finish, value: allow },
    ]),
    ...rangesOf(allowed.flatMap((numbers) => numbers[column] ?? [])).flatMap(allowRange),
    { code: finish, value: refuseWith(ENOSYS) },
  ]
}

type Range = readonly [first: number, last: number]

function rangesOf(numbers: readonly number[]): readonly Range[] {
  const ranges: [number, number][] = []
  for (const number of numbers.toSorted((one, other) => one - other)) {
    const range = ranges.at(-1)
    if (range && number <= range[1] + 1) range[1] = number
    else ranges.push([number, number])
  }
  return ranges
}

function allowRange([first, last]: Range): readonly Instruction[] {
  return [
    { code: jumpIfAtLeast, value: first, ifFalse: 2 },
    { code: jumpIfGreater, value: last, ifTrue: 1 },
    { code: finish, value: allow },
  ]
}

const refusePacketFilters: readonly Instruction[] = [
  { code: load, value: argumentOffset(2) },
  ...packetFilterOptions.flatMap((option) =>
    when(option, [{ code: finish, value: refuseWith(constants.errno.EPERM) }]),
  ),
  { code: finish, value: allow },
]

/** Runs the body, which must return, if the loaded value equals `value`. Otherwise skips it. */
function when(value: number, body: readonly Instruction[]): readonly Instruction[] {
  return [{ code: jumpIfEqual, value, ifFalse: body.length }, ...body]
}

function refuseFlags(flags: number): readonly Instruction[] {
  return [
    { code: load, value: argumentOffset(0) },
    { code: jumpIfSet, value: flags, ifFalse: 1 },
    { code: finish, value: refuseWith(constants.errno.EPERM) },
    { code: finish, value: allow },
  ]
}

function allowOnly(values: readonly number[], errno: number): readonly Instruction[] {
  return [
    ...values.flatMap((value) => when(value, [{ code: finish, value: allow }])),
    { code: finish, value: refuseWith(errno) },
  ]
}

/** Writes `struct sock_filter` in the byte order of both architectures. */
function assemble(instructions: readonly Instruction[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(instructions.length * 8)
  const view = new DataView(bytes.buffer)
  instructions.forEach(({ code, value, ifTrue = 0, ifFalse = 0 }, index) => {
    view.setUint16(index * 8, code, true)
    view.setUint8(index * 8 + 2, ifTrue)
    view.setUint8(index * 8 + 3, ifFalse)
    view.setUint32(index * 8 + 4, value >>> 0, true)
  })
  return bytes
}
