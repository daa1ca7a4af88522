import { dirname, join } from 'node:path'
import { inMachineNetwork } from '@berth/runtime/machine-network/network-command.ts'
import { type Command, unprivileged } from '../../../host/confined-process.ts'
import { uvProgram } from '../../../host-checks/uv.ts'
import type { MachineFolders } from '../machine-folders.ts'
import type { HostDirectories } from './host-directories.ts'
import { withDisk } from './machine-disk.ts'
import { hostName, inMachine, type MachineUser, userName } from './machine-files.ts'

/** The numbers of the files that a machine's processes inherit. */
export const descriptors = { agentSocket: 3, lifeline: 4, seccompFilter: 5, sandboxInfo: 6 } as const

export interface MachineCommandOptions {
  readonly folders: MachineFolders
  readonly directories: HostDirectories
  readonly user: MachineUser
  readonly memoryBytes: number
  /** Whether the machine has its disk in a file, which is mounted for it. */
  readonly hasDiskImage: boolean
  readonly isApp: boolean
  /** Groups of the host that may use its GPU; absent for a machine that does not see it. */
  readonly gpuGroups: readonly number[] | undefined
  /** Control groups to be in before anything of the machine runs. */
  readonly groups: readonly string[]
  /** Runs in the machine. */
  readonly command: readonly string[]
}

/** Of one process. Chromium's own processes ask for 8,192 at most. */
const maxOpenFiles = 16_384
/** All machines of a host share some 3,000. */
const maxTerminals = 256

/*
 * Closes what berth itself has inherited, so that no file of the host goes into the machine by mistake; needs bash,
 * since other shells know no descriptors above 9. Core files would fill the machine's disk. Open files are of a table of
 * the host. When the host runs out of memory, the kernel is to look for it in machines before it looks in berth.
 */
const enterGroups = `
for path in /proc/self/fd/*; do
  descriptor=\${path##*/}
  ((descriptor > ${descriptors.sandboxInfo})) && eval "exec $descriptor>&-"
done
ulimit -c 0
ulimit -n ${maxOpenFiles} 2>/dev/null
echo 100 2>/dev/null >/proc/self/oom_score_adj
while [[ $1 != -- ]]; do
  echo 0 > "$1/cgroup.procs" || exit
  shift
done
shift
exec "$@"
`

/** Bubblewrap makes some without a limit. */
const mountTerminals = `mount -t devpts -o newinstance,ptmxmode=0666,mode=620,max=${maxTerminals} devpts "$1" && shift && exec "$@"`

/**
 * The command that becomes a machine: it enters its control groups, takes a network of its own and furnishes it, and
 * lets bubblewrap build the rest. Each step replaces the one before, so that the first process is bubblewrap in the end.
 */
export function machineCommand(options: MachineCommandOptions): Command {
  const { groups, directories, user } = options
  return {
    program: '/bin/bash',
    args: [
      ...['--noprofile', '--norc', '-c', enterGroups, 'berth-machine', ...groups, '--'],
      ...['unshare', ...(user.isHostUser ? [] : ['--map-root-user']), '--net', '--'],
      ...inMachineNetwork(directories.network, [...ownMounts(options), ...sandbox(options)]),
    ],
  }
}

/** What bubblewrap takes into the machine and cannot make itself. All of it ends with the machine's first process. */
function ownMounts({ folders, user, hasDiskImage }: MachineCommandOptions): readonly string[] {
  return [
    ...['unshare', '--mount', '--', '/bin/sh', '-c', mountTerminals, 'berth-machine', folders.terminals],
    ...(hasDiskImage ? withDisk(folders, user) : []),
  ]
}

function sandbox(options: MachineCommandOptions): readonly string[] {
  const { directories, user, gpuGroups, command } = options
  return [
    ...['bwrap', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup', '--hostname', hostName],
    // Where berth is no root the machine gets a user namespace, and is an ordinary user in it from the start.
    ...(user.isHostUser ? [] : ['--unshare-user', '--uid', String(user.uid), '--gid', String(user.gid)]),
    // Away from the terminal of whoever started berth.
    '--new-session',
    ...['--sync-fd', String(descriptors.lifeline), '--info-fd', String(descriptors.sandboxInfo)],
    ...(directories.seccompFilter ? ['--seccomp', String(descriptors.seccompFilter)] : []),
    ...environment(),
    ...view(options),
    ...['--chdir', inMachine.home, '--'],
    ...(user.isHostUser ? unprivileged(user, gpuGroups) : []),
    ...command,
  ]
}

/** Nothing of the host's own. */
function environment(): readonly string[] {
  const variables = {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: inMachine.home,
    USER: userName,
    LOGNAME: userName,
    SHELL: '/bin/bash',
    LANG: 'C.UTF-8',
    XDG_RUNTIME_DIR: inMachine.run,
  }
  return ['--clearenv', ...Object.entries(variables).flatMap(([name, value]) => ['--setenv', name, value])]
}

/** The disk as the machine sees it. */
function view({ folders, directories, memoryBytes, gpuGroups, isApp }: MachineCommandOptions): readonly string[] {
  return [
    ...directories.systemFolders,
    // Those that bubblewrap makes by itself on the way to a mount only root could pass.
    ...folders755.flatMap((folder) => ['--perms', '0755', '--dir', folder]),
    ...hostEtc.flatMap((name) => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`]),
    ...timeZone(directories),
    ...ownEtc.flatMap((name) => ['--ro-bind', `${folders.etc}/${name}`, `/etc/${name}`]),
    ...['--ro-bind', folders.policies, '/etc/chromium/policies/managed'],
    // Without this cache every new browser would read all fonts of the system first.
    ...['--ro-bind-try', '/var/cache/fontconfig', '/var/cache/fontconfig', '--symlink', '/tmp', '/var/tmp'],
    ...['--proc', '/proc', '--dev', '/dev', '--dev-bind', folders.terminals, '/dev/pts'],
    ...['--perms', '1777', '--size', String(Math.floor(memoryBytes / 2)), '--tmpfs', '/dev/shm'],
    ...(gpuGroups ? gpuDevices : []),
    ...[
      '--bind',
      folders.home,
      inMachine.home,
      '--bind',
      folders.temporary,
      '/tmp',
      '--bind',
      folders.run,
      inMachine.run,
    ],
    // The folder, not the socket: egress makes it when it is asked to. Nothing but this socket is in it, whereas the
    // folder above holds the agent's socket, which code in the machine must not be able to replace by a link.
    ...['--ro-bind', folders.egress, inMachine.egress],
    ...['--ro-bind', directories.node, inMachine.node, '--ro-bind', directories.programs, inMachine.programs],
    ...(isApp ? appPackages(directories) : []),
    ...['--ro-bind', folders.agentConfig, inMachine.agentConfig],
    // What bubblewrap has built around all this is memory that no limit of a folder covers.
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
  ]
}

function appPackages({ appPackages }: HostDirectories): readonly string[] {
  const { appPackages: folder } = inMachine
  return [
    ...[dirname(folder), folder, join(folder, '@esbuild')].flatMap((path) => ['--perms', '0755', '--dir', path]),
    ...Object.entries(appPackages).flatMap(([name, path]) => ['--ro-bind', path, join(folder, name)]),
    ...['--ro-bind-try', uvProgram, inMachine.uv],
  ]
}

const folders755 = ['/etc/ssl', '/etc/pki', '/etc/chromium/policies', '/home', '/opt/berth', '/run/berth', '/var/cache']
const ownEtc = ['passwd', 'group', 'hosts', 'hostname', 'nsswitch.conf', 'resolv.conf', 'machine-id']

/** Of the host's settings, those that programs need to run and that tell nothing of the host's own business. */
const hostEtc = [
  ...['alternatives', 'ld.so.cache', 'timezone', 'os-release', 'debian_version', 'fonts', 'terminfo'],
  ...['ssl/certs', 'ssl/openssl.cnf', 'pki/tls', 'pki/ca-trust', 'mime.types', 'services', 'protocols'],
  ...['vulkan', 'glvnd', 'drirc'],
]

/** As a link, since Chromium reads the name of the zone from it; else it would compare the file with those of all zones. */
function timeZone({ timeZoneFile }: HostDirectories): readonly string[] {
  return timeZoneFile === undefined ? [] : ['--symlink', timeZoneFile, '/etc/localtime']
}

/** Drivers look the device up by its number. */
const gpuDevices = [
  ...['--dev-bind', '/dev/dri', '/dev/dri'],
  ...['/sys/dev/char', '/sys/devices', '/sys/class/drm'].flatMap((path) => ['--ro-bind-try', path, path]),
]
