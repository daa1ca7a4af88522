import { allowedNames } from '../local/sandbox/system-calls.ts'

/**
 * System calls of the programs that create the sandbox, for its namespaces, mounts and network. Calls whose arguments
 * the filter of the sandbox inspects are allowed completely here, because that filter applies in addition.
 */
const aroundTheSandbox = [
  ...['clone', 'unshare', 'setns', 'mount', 'umount2', 'pivot_root', 'mount_setattr', 'open_tree', 'move_mount'],
  ...['socket', 'socketpair', 'setsockopt', 'ioctl', 'personality', 'sethostname'],
] as const

/** ENOSYS makes callers fall back to an older call, as in the sandbox. */
const refusal = 38

/** The seccomp profile of a machine's containers, in the format of container runtimes. */
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
