import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'

/** A process of this host. Its pid is given to another one some time after its end; with its start time it is unique. */
export interface HostProcess {
  readonly pid: number
  readonly startTime: string
}

export interface ProcessFacts extends HostProcess {
  readonly parent: number
  readonly isZombie: boolean
  readonly isStopped: boolean
}

const endLimitMilliseconds = 10_000

export async function readProcess(pid: number): Promise<ProcessFacts | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : parseProcess(text)
}

/** Reads `/proc/<pid>/stat`: `42 (any name) S 1 …`, where the name may hold spaces and brackets. */
export function parseProcess(text: string): ProcessFacts {
  const [state = '', parent = '', ...others] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return {
    pid: Number.parseInt(text, 10),
    parent: Number(parent),
    startTime: others[17] ?? '',
    isZombie: state === 'Z' || state === 'X',
    isStopped: state === 'T',
  }
}

/** A zombie has ended: it holds nothing any more but its number. */
export async function isAlive({ pid, startTime }: HostProcess): Promise<boolean> {
  const found = await readProcess(pid)
  return found !== undefined && found.startTime === startTime && !found.isZombie
}

/** Sends the signal, to the whole group where the pid is negative. Whoever has ended needs none. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Waits for processes that were killed. The kernel takes milliseconds to clear a large one, and tells nobody but the parent. */
export async function waitForEnd(processes: readonly HostProcess[]): Promise<void> {
  const deadline = performance.now() + endLimitMilliseconds
  for (const candidate of processes) {
    for (let wait = 1; await isAlive(candidate); wait = Math.min(wait * 2, 50)) {
      if (performance.now() > deadline) throw new Error(`process ${candidate.pid} has been killed and does not end`)
      await delay(wait)
    }
  }
}
