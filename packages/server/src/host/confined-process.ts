import { realpath } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { ServiceUser } from './service-user.ts'
import { systemFolders } from './system-folders.ts'

/** A program and its arguments for spawn. */
export interface Command {
  readonly program: string
  readonly args: readonly string[]
}

export interface Confinement extends Command {
  /**
   * The user that runs the program. When absent, berth does not run as root, and the program runs unconfined as berth's
   * own user.
   */
  readonly user: ServiceUser | undefined
  /** Files and folders that the program needs in addition to the system's. They keep their paths. */
  readonly readOnly: readonly string[]
  /** Folders that it may write to, as far as their owner permits. */
  readonly writable: readonly string[]
  /**
   * The program can see and signal only its own processes, and all of them end when bubblewrap's inner process ends.
   * Not suitable for a program that leaves a daemon behind.
   */
  readonly seesOwnProcessesOnly?: boolean
}

/**
 * Returns the command that runs a helper program of berth as an unprivileged user. It sees the system read-only, the
 * named paths (also below /root, which the user could not enter by itself) and nothing else of the disk. It shares the
 * network of the host, and also the processes unless `seesOwnProcessesOnly` is set.
 *
 * bubblewrap runs between berth and the program and exits with the program's exit code. A signal to bubblewrap does not
 * reach the program. To end the program, use its own means, or kill what `findOwnProcesses` finds by its command line,
 * which are bubblewrap's processes around it.
 */
export async function confinedCommand(confinement: Confinement): Promise<Command> {
  const { program, args, user, readOnly, writable, seesOwnProcessesOnly = false } = confinement
  if (user === undefined) return { program, args }

  const view = [
    ...(await systemFolders()),
    ...['--ro-bind', '/etc', '/etc'],
    ...(await nameServerFolder()),
    ...['--proc', '/proc', '--dev', '/dev'],
    // bubblewrap's own folders belong to root, and PostgreSQL keeps shared memory in one of them.
    ...['--perms', '1777', '--tmpfs', '/dev/shm', '--perms', '1777', '--tmpfs', '/tmp'],
    ...readOnly.flatMap((path) => [...enterable(dirname(path)), '--ro-bind', path, path]),
    ...writable.flatMap((path) => [...enterable(dirname(path)), '--bind', path, path]),
    ...['--remount-ro', '/'],
    ...(seesOwnProcessesOnly ? ['--unshare-pid'] : []),
  ]
  return { program: '/usr/bin/bwrap', args: [...view, '--', ...unprivileged(user), program, ...args] }
}

/** Drops the rights of root permanently: no capability remains, and no program that the user starts can regain one. */
export function unprivileged({ uid, gid }: ServiceUser, groups: readonly number[] = []): readonly string[] {
  const identity = [
    `--reuid=${uid}`,
    `--regid=${gid}`,
    groups.length > 0 ? `--groups=${groups.join(',')}` : '--clear-groups',
  ]
  return ['/usr/bin/setpriv', ...identity, '--no-new-privs', '--bounding-set=-all', '--inh-caps=-all', '--']
}

/** bubblewrap creates missing parent folders of a path, but creates /root so that only root can enter it. */
function enterable(folder: string): readonly string[] {
  return ['--perms', '0755', '--dir', folder]
}

/**
 * The folder of /etc/resolv.conf if that is a link out of /etc. The file itself is replaced when the network changes.
 */
async function nameServerFolder(): Promise<readonly string[]> {
  const path = await realpath('/etc/resolv.conf').catch(() => undefined)
  return path === undefined || path.startsWith('/etc/') ? [] : ['--ro-bind', dirname(path), dirname(path)]
}
