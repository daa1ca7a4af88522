import { dirname, join } from 'node:path'
import { inMachineNetwork } from '@berth/runtime/machine-network/network-command.ts'
import { type Command, unprivileged } from '../../../host/confined-process.ts'
import { uvProgram } from '../../../host-checks/uv.ts'
import type { MachineFolders } from '../machine-folders.ts'
import type { HostDirectories } from './host-directories.ts'
import { withDisk } from './machine-disk.ts'
import { hostName, inMachine, type MachineUser, userName } from './machine-files.ts'

/** The file descriptors that a machine's processes inherit. */
export const descriptors = { agentSocket: 3, lifeline: 4, seccompFilter: 5, sandboxInfo: 6 } as const

export interface MachineCommandOptions {
  readonly folders: MachineFolders
  readonly directories: HostDirectories
  readonly user: MachineUser
  readonly memoryBytes: number
  /** Whether the machine has a disk image, which is mounted for it. */
  readonly hasDiskImage: boolean
  readonly isApp: boolean
  /** Groups of the host that may use its GPU. Absent for a machine without GPU. */
  readonly gpuGroups: readonly number[] | undefined
  /** Control groups to enter before anything of the machine runs. */
  readonly groups: readonly string[]
  /** Runs in the machine. */
  readonly command: readonly string[]
}

/** When the host runs out of memory, the kernel should kill machines before berth. */
export const oomScoreAdjustment = 100
/** The limit of one process. Chromium's processes request at most 8,192. */
const maxOpenFiles = 16_384
/** All machines of a host share about 3,000. */
const maxTerminals = 256

/*
 * Closes what berth itself has inherited, so that no file of the host gets into the machine by mistake. Needs bash,
 * because other shells do not support descriptors above 9. Disables core files, which would fill the machine's disk.
 * Limits open files, whose table belongs to the host.
 */
const enterGroups = `
for path in /proc/self/fd/*; do
  descriptor=\${path##*/}
  ((descriptor > ${descriptors.sandboxInfo})) && eval "exec $descriptor>&-"
done
ulimit -c 0
ulimit -n ${maxOpenFiles} 2>/dev/null
echo ${oomScoreAdjustment} 2>/dev/null >/proc/self/oom_score_adj
while [[ $1 != -- ]]; do
  echo 0 > "$1/cgroup.procs" || exit
  shift
done
shift
exec "$@"
`

/** bubblewrap mounts one without a limit. */
const mountTerminals = `mount -t devpts -o newinstance,ptmxmode=0666,mode=620,max=${maxTerminals} devpts "$1" && shift && exec "$@"`

/**
 * The command that builds a machine: it enters the control groups, creates and configures a network, and lets
 * bubblewrap build the rest. Each step replaces the one before, so the first process is bubblewrap in the end.
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

/** Mounts that bubblewrap cannot create itself. They end with the machine's first process. */
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
    // Without root, the machine gets a user namespace and is an ordinary user in it from the start.
    ...(user.isHostUser ? [] : ['--unshare-user', '--uid', String(user.uid), '--gid', String(user.gid)]),
    // Detaches the machine from berth's terminal.
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

/** Contains nothing of the host's environment. */
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

/** The file system of the machine. */
function view({ folders, directories, memoryBytes, gpuGroups, isApp }: MachineCommandOptions): readonly string[] {
  return [
    ...directories.systemFolders,
    // The parent folders that bubblewrap creates for a mount are accessible only to root.
    ...folders755.flatMap((folder) => ['--perms', '0755', '--dir', folder]),
    ...hostEtc.flatMap((name) => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`]),
    ...timeZone(directories),
    ...ownEtc.flatMap((name) => ['--ro-bind', `${folders.etc}/${name}`, `/etc/${name}`]),
    ...['--ro-bind', folders.policies, '/etc/chromium/policies/managed'],
    // Without this cache, every new browser would read all fonts of the system first.
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
    // Mounts the folder, not the socket, because egress creates the socket later. The folder contains only this socket.
    // The folder above contains the agent's socket, which code in the machine must not replace by a link.
    ...['--ro-bind', folders.egress, inMachine.egress],
    ...['--ro-bind', directories.node, inMachine.node, '--ro-bind', directories.programs, inMachine.programs],
    ...(isApp ? appPackages(directories) : []),
    ...['--ro-bind', folders.agentConfig, inMachine.agentConfig],
    // What bubblewrap built around it is memory that no limit covers.
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

/** Settings of the host that programs need and that reveal nothing else about the host. */
const hostEtc = [
  ...['alternatives', 'ld.so.cache', 'timezone', 'os-release', 'debian_version', 'fonts', 'terminfo'],
  ...['ssl/certs', 'ssl/openssl.cnf', 'pki/tls', 'pki/ca-trust', 'mime.types', 'services', 'protocols'],
  ...['vulkan', 'glvnd', 'drirc'],
]

/**
 * As a link, because Chromium reads the name of the zone from it. Otherwise Chromium would compare the file with those
 * of all zones.
 */
function timeZone({ timeZoneFile }: HostDirectories): readonly string[] {
  return timeZoneFile === undefined ? [] : ['--symlink', timeZoneFile, '/etc/localtime']
}

/** Drivers find the device by its number. */
const gpuDevices = [
  ...['--dev-bind', '/dev/dri', '/dev/dri'],
  ...['/sys/dev/char', '/sys/devices', '/sys/class/drm'].flatMap((path) => ['--ro-bind-try', path, path]),
]
