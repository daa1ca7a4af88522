import { allowedNames } from '../local/sandbox/system-calls.ts'

/**
 * What the programs around the sandbox use besides: they make its namespaces, mounts and network. Calls whose arguments
 * the filter of the sandbox looks at are allowed as a whole here, because that filter comes on top.
 */
const aroundTheSandbox = [
  ...['clone', 'unshare', 'setns', 'mount', 'umount2', 'pivot_root', 'mount_setattr', 'open_tree', 'move_mount'],
  ...['socket', 'socketpair', 'setsockopt', 'ioctl', 'personality', 'sethostname'],
] as const

/** ENOSYS: callers take an older way, as in the sandbox. */
const refusal = 38

/** The profile of the containers of a machine, as container runtimes read it. */
export function containerProfile() {
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: refusal,
    archMap: [
      { architecture: 'SCMP_ARCH_X86_64', subArchitectures: [] },
      { architecture: 'SCMP_ARCH_AARCH64', subArchitectures: [] },
    ],
    syscalls: [{ names: [...allowedNames, ...aroundTheSandbox].toSorted(), action: 'SCMP_ACT_ALLOW' }],
  }
}
