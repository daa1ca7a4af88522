import { constants } from 'node:os'

/*
 * The system calls that a machine does without. Chromium's own sandbox needs to make user, pid and network namespaces
 * and to chroot, so these stay allowed; what a user namespace would open beyond them (mounts, packet filters, keys) is
 * refused, since most escapes from user namespaces went through there. A refusal is an error code, not the end of the
 * process: programs that merely try get by.
 */

interface Architecture {
  /** As the kernel names it to a filter: `AUDIT_ARCH_…`. */
  readonly id: number
  readonly column: 0 | 1
}

const architectures: Partial<Record<NodeJS.Architecture, Architecture>> = {
  x64: { id: 0xc000_003e, column: 0 },
  arm64: { id: 0xc000_00b7, column: 1 },
}

type Numbers = readonly [x64: number | undefined, arm64: number | undefined]

/** Refused with EPERM. */
const forbidden: Readonly<Record<string, Numbers>> = {
  // Other processes, also those that share the machine's user.
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  pidfd_getfd: [438, 438],
  // Keyrings belong to a user of the host and know no namespaces.
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  // Mounts, in whatever namespace.
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  setns: [308, 268],
  // Files by handle, past every mount.
  open_by_handle_at: [304, 265],
  // Large parts of the kernel that a browser has no use for.
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  fanotify_init: [300, 262],
  lookup_dcookie: [212, 18],
  // The host as a whole; the kernel asks for capabilities too, which nothing in a machine has.
  acct: [163, 89],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  syslog: [103, 116],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  vhangup: [153, 58],
  nfsservctl: [180, 42],
  uselib: [134, undefined],
  iopl: [172, undefined],
  ioperm: [173, undefined],
  modify_ldt: [154, undefined],
}

/** Refused as if the kernel did not have them, so that callers take the older way. */
const absent: Readonly<Record<string, Numbers>> = {
  // Its flags are in memory, where a filter cannot look: glibc then calls clone, whose flags are in a register.
  clone3: [435, 435],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
}

const clone: Numbers = [56, 220]
const unshare: Numbers = [272, 97]
const ioctl: Numbers = [16, 29]
const socket: Numbers = [41, 198]
const setsockopt: Numbers = [54, 208]

/** CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS and NEWIPC. NEWTIME shares its bit with clone's exit signal, which is no matter. */
const forbiddenNamespaces = 0x0000_0080 | 0x0002_0000 | 0x0200_0000 | 0x0400_0000 | 0x0800_0000
/** TIOCSTI and TIOCLINUX type into a terminal on somebody else's behalf. */
const forbiddenTerminalRequests = [0x5412, 0x541c]
/** UNIX, INET and INET6. Others are old, or know no network namespaces: VSOCK speaks to the host of a virtual machine. */
const allowedSocketFamilies = [1, 2, 10]
const netlinkFamily = 16
/** NETLINK_ROUTE and NETLINK_KOBJECT_UEVENT: what networks and devices there are. The packet filter is one of the others. */
const allowedNetlinkProtocols = [0, 15]
/** SOL_IP and SOL_IPV6, and what replaces tables and counters of ip, ip6, arp and bridge filters there. */
const packetFilterLevels = [0, 41]
const packetFilterOptions = [64, 65, 96, 97, 128, 129]

const load = 0x20
const jumpIfEqual = 0x15
const jumpIfSet = 0x45
const finish = 0x06

const allow = 0x7fff_0000
const killProcess = 0x8000_0000
const refuseWith = (errno: number) => 0x0005_0000 | errno

const numberOffset = 0
const architectureOffset = 4
/** The lower half of an argument: the kernel ignores the upper half of all that are looked at here. */
const argumentOffset = (index: number) => 16 + 8 * index
/** Marks the calls of x32, a second table of x64 that repeats the first. */
const x32Bit = 0x4000_0000

interface Instruction {
  readonly code: number
  readonly value: number
  /** Instructions to pass over when the condition holds, and when it does not. */
  readonly ifTrue?: number
  readonly ifFalse?: number
}

/** The filter as a program for the kernel, or undefined for an architecture whose calls are not known here. */
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
    // Another architecture has other numbers for the same calls, and would pass every rule below.
    { code: jumpIfEqual, value: id, ifTrue: 1 },
    { code: finish, value: killProcess },
    { code: load, value: numberOffset },
    { code: jumpIfSet, value: x32Bit, ifFalse: 1 },
    { code: finish, value: refuseWith(ENOSYS) },
    ...numbersOf(forbidden).flatMap((number) => when(number, [{ code: finish, value: refuseWith(EPERM) }])),
    ...numbersOf(absent).flatMap((number) => when(number, [{ code: finish, value: refuseWith(ENOSYS) }])),
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
    ...when(call(setsockopt), [
      { code: load, value: argumentOffset(1) },
      ...packetFilterLevels.flatMap((level) => when(level, refusePacketFilters)),
      { code: finish, value: allow },
    ]),
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

/** Runs the body, which has to finish, when the loaded value is the wanted one; passes over it otherwise. */
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
