import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from './command.ts'
import { familyVariable } from './process-environment.ts'

const maxRounds = 200
const roundMilliseconds = 5

interface Family {
  readonly command: Command
  /** The process that leads the command's group. */
  readonly pid: number
}

/**
 * Kills a command and everything that it has started: its process group, those that carry its variable wherever they
 * have gone, and their children. Resolves when none of them is left; some may start others while they are looked for.
 */
export async function killFamily({ command, pid }: Family): Promise<void> {
  for (let round = 0; round < maxRounds; round++) {
    signalGroup(pid, 'SIGKILL')
    const members = await findMembers(command.id)
    if (members.size === 0) return
    for (const member of members) signal(member, 'SIGKILL')
    await delay(roundMilliseconds)
  }
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

async function findMembers(id: string): Promise<ReadonlySet<number>> {
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
