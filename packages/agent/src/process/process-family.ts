import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { familyVariable } from './process-environment.ts'

const maxRounds = 200
const roundMilliseconds = 5

export interface Family {
  /** In the variable that all of them have in their environment. */
  readonly id: string
  /** The process that leads the group. */
  readonly pid: number
}

/**
 * Kills a command and everything that it has started: its process group, those that carry its variable wherever they
 * have gone, and their children. Resolves when none of them is left; some may start others while they are looked for.
 */
export async function killFamily({ id, pid }: Family): Promise<void> {
  for (let round = 0; round < maxRounds; round++) {
    // Before any of them dies: children with an environment of their own are found by their parents alone.
    const members = await findMembers(id)
    signalGroup(pid, 'SIGKILL')
    if (members.size === 0) return
    for (const member of members) signal(member, 'SIGKILL')
    await delay(roundMilliseconds)
  }
}

/** Kills what the leader has started, and not the leader itself; returns whether there was any. */
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

/** Says whether there was somebody to receive it. */
export function signalGroup(pid: number, name: NodeJS.Signals): boolean {
  return signal(-pid, name)
}

function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name)
    return true
  } catch {
    return false // It has ended, or has become somebody else's.
  }
}

async function findMembers(id: string): Promise<Set<number>> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const all = await Promise.all(pids.map((pid) => describe(pid, id)))
  const members = new Set(all.filter(({ isMarked }) => isMarked).map(({ pid }) => pid))
  // Those that were started with an environment of their own are found by their parents.
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
    return { pid, parent: 0, isMarked: false } // It has ended meanwhile, or is not ours to look at.
  }
}
