import { readdir, readFile } from 'node:fs/promises'

/**
 * Finds the processes of this berth with a matching command line, as the kernel reports it. Never ask a helper or a
 * machine for its pid in order to signal it: a compromised one could name any process of the host.
 */
export async function findOwnProcesses(fits: (args: readonly string[]) => boolean): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const found = await Promise.all(
    pids.map(async (pid) => (fits(await readArguments(pid)) && (await isOnHostSide(pid)) ? [pid] : [])),
  )
  return found.flat()
}

export async function readArguments(pid: number): Promise<readonly string[]> {
  return (await read(pid, 'cmdline')).split('\0')
}

/**
 * A process can change its own command line. So it counts only if it runs as our own user, and where programs of
 * machines and helpers cannot be: outside of their pid namespaces, or as the first process of one.
 */
export async function isOnHostSide(pid: number): Promise<boolean> {
  const [status, ownStatus] = await Promise.all([read(pid, 'status'), read('self', 'status')])
  const uid = /^Uid:\t(\d+)/m.exec(status)?.[1]
  const pids = namespacePids(status)
  const depth = pids.length - namespacePids(ownStatus).length
  return uid === String(process.geteuid?.()) && (depth === 0 || (depth === 1 && pids.at(-1) === '1'))
}

/** The pids of a process in our own pid namespace and in each nested one. */
function namespacePids(status: string): readonly string[] {
  return /^NSpid:\t(.*)$/m.exec(status)?.[1]?.split('\t') ?? []
}

async function read(pid: number | 'self', file: string): Promise<string> {
  return readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')
}
