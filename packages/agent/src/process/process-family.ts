import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { familyVariable } from './process-environment.ts'

const maxRounds = 200
const roundMilliseconds = 5

export interface Family {
  /** The value of the variable in their environment. */
  readonly id: string
  /** The leader of the process group. */
  readonly pid: number
}

/**
 * Kills a command and everything that it has started: its process group, processes with its variable, and their
 * children. Resolves when none is left; repeats the search, because they may start others meanwhile.
 */
export async function killFamily({ id, pid }: Family): Promise<void> {
  for (let round = 0; round < maxRounds; round++) {
    // Collected before any of them dies: children with another environment are found only through their parents.
    const members = await findMembers(id)
    signalGroup(pid, 'SIGKILL')
    if (members.size === 0) return
    for (const member of members) signal(member, 'SIGKILL')
    await delay(roundMilliseconds)
  }
}

/** Kills everything that the leader has started, but not the leader; returns whether there was anything. */
export async function killDescendants({ id, pid }: Family): Promise<boolean> {
  for (let round = 0; round < maxRounds; round++) {
    const members = await findMembers(id)
    members.delete(pid)
    if (members.size === 0) return round > 0
    for (const member of members) signal(member, 'SIGKILL')
    await delay(roundMilliseconds)
  }
  return true
}

/** Returns whether a process received it. */
export function signalGroup(pid: number, name: NodeJS.Signals): boolean {
  return signal(-pid, name)
}

function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name)
    return true
  } catch {
    return false // It has ended, or now belongs to another user.
  }
}

async function findMembers(id: string): Promise<Set<number>> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const all = await Promise.all(pids.map((pid) => describe(pid, id)))
  const members = new Set(all.filter(({ isMarked }) => isMarked).map(({ pid }) => pid))
  // Processes with another environment are found through their parents.
  for (let size = -1; size !== members.size; ) {
    size = members.size
    for (const { pid, parent } of all) if (members.has(parent)) members.add(pid)
  }
  return members
}

async function describe(pid: number, id: string): Promise<{ pid: number; parent: number; isMarked: boolean }> {
  try {
    const [environment, stat] = await Promise.all([
      readFile(`/proc/${pid}/environ`),
      readFile(`/proc/${pid}/stat`, 'latin1'),
    ])
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
    return { pid, parent, isMarked: environment.includes(`${familyVariable}=${id}`) }
  } catch {
    return { pid, parent: 0, isMarked: false } // It has ended meanwhile, or may not be inspected.
  }
}
