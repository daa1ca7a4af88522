import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'

/** A process of this host. The kernel reuses a pid some time after its end; the start time makes it unique. */
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

/** Parses `/proc/<pid>/stat`: `42 (any name) S 1 …`, where the name may contain spaces and brackets. */
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

/** A zombie counts as ended: it holds nothing except its pid. */
export async function isAlive({ pid, startTime }: HostProcess): Promise<boolean> {
  const found = await readProcess(pid)
  return found !== undefined && found.startTime === startTime && !found.isZombie
}

/** Sends the signal, to the whole process group if the pid is negative. Ignores a process that has ended. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/**
 * Waits for killed processes to end. The kernel takes milliseconds to remove a large one, and notifies only its parent.
 */
export async function waitForEnd(processes: readonly HostProcess[]): Promise<void> {
  const deadline = performance.now() + endLimitMilliseconds
  for (const candidate of processes) {
    for (let wait = 1; await isAlive(candidate); wait = Math.min(wait * 2, 50)) {
      if (performance.now() > deadline) throw new Error(`process ${candidate.pid} was killed but does not exit`)
      await delay(wait)
    }
  }
}
