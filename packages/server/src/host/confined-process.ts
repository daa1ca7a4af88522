import { realpath } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { ServiceUser } from './service-user.ts'
import { systemFolders } from './system-folders.ts'

/** A program and its arguments, ready for spawn. */
export interface Command {
  readonly program: string
  readonly args: readonly string[]
}

export interface Confinement extends Command {
  /** Whom the program runs as. Absent: berth is no root, and the program runs as it is, under berth's own user. */
  readonly user: ServiceUser | undefined
  /** Files and folders that the program needs besides the system's own. They keep their paths. */
  readonly readOnly: readonly string[]
  /** Folders that it may write, where their owner lets it. */
  readonly writable: readonly string[]
  /**
   * The program sees and can signal none but its own processes, and all of them end when bubblewrap's inner process
   * does. Not for a program that leaves a daemon behind.
   */
  readonly seesOwnProcessesOnly?: boolean
}

/**
 * The command that runs a helper program of berth under an unprivileged user who sees the system read-only, the named
 * paths (also below /root, which that user could not enter by itself) and nothing else of the disk. The network is the
 * host's, and so are the processes unless the program is to see only its own.
 *
 * Between berth and the program stands bubblewrap, which ends with the program's own exit code. A signal to
 * bubblewrap does not reach the program: tell the program by its own means to end, or kill what `findOwnProcesses`
 * finds by its command line, which are bubblewrap's processes around it.
 */
export async function confinedCommand(confinement: Confinement): Promise<Command> {
  const { program, args, user, readOnly, writable, seesOwnProcessesOnly = false } = confinement
  if (user === undefined) return { program, args }

  const view = [
    ...(await systemFolders()),
    ...['--ro-bind', '/etc', '/etc'],
    ...(await nameServerFolder()),
    ...['--proc', '/proc', '--dev', '/dev'],
    // The folders of bubblewrap's own belong to root; PostgreSQL keeps shared memory in one of them.
    ...['--perms', '1777', '--tmpfs', '/dev/shm', '--perms', '1777', '--tmpfs', '/tmp'],
    ...readOnly.flatMap((path) => [...enterable(dirname(path)), '--ro-bind', path, path]),
    ...writable.flatMap((path) => [...enterable(dirname(path)), '--bind', path, path]),
    ...['--remount-ro', '/'],
    ...(seesOwnProcessesOnly ? ['--unshare-pid'] : []),
  ]
  return { program: '/usr/bin/bwrap', args: [...view, '--', ...unprivileged(user), program, ...args] }
}

/** Gives up root for good: no capability is left, and no program that the user starts can bring one back. */
export function unprivileged({ uid, gid }: ServiceUser, groups: readonly number[] = []): readonly string[] {
  const identity = [
    `--reuid=${uid}`,
    `--regid=${gid}`,
    groups.length > 0 ? `--groups=${groups.join(',')}` : '--clear-groups',
  ]
  return ['/usr/bin/setpriv', ...identity, '--no-new-privs', '--bounding-set=-all', '--inh-caps=-all', '--']
}

/** Bubblewrap makes missing folders on the way to a path, but /root so that only root could pass. */
function enterable(folder: string): readonly string[] {
  return ['--perms', '0755', '--dir', folder]
}

/** Where /etc/resolv.conf is a link out of /etc, its folder: the file itself is replaced when the network changes. */
async function nameServerFolder(): Promise<readonly string[]> {
  const path = await realpath('/etc/resolv.conf').catch(() => undefined)
  return path === undefined || path.startsWith('/etc/') ? [] : ['--ro-bind', dirname(path), dirname(path)]
}
