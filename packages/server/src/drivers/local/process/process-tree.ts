import { readdir } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { type HostProcess, type ProcessFacts, readProcess, sendSignal } from './host-process.ts'

const stopLimitMilliseconds = 5_000

/** Stops a process and all its descendants, until none is left that could create another. */
export async function stopTree(root: HostProcess): Promise<void> {
  const deadline = performance.now() + stopLimitMilliseconds
  for (;;) {
    const running = (await findTree(root)).filter(({ isStopped, isZombie }) => !isStopped && !isZombie)
    if (running.length === 0) return
    if (performance.now() > deadline) throw new Error(`${running.length} processes below ${root.pid} do not stop`)
    for (const { pid } of running) sendSignal(pid, 'SIGSTOP')
    await delay(1)
  }
}

/** Continues a process and all its descendants. */
export async function continueTree(root: HostProcess): Promise<void> {
  for (const { pid } of await findTree(root)) sendSignal(pid, 'SIGCONT')
}

/** Parents come before their children. */
async function findTree(root: HostProcess): Promise<readonly ProcessFacts[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const processes = (await Promise.all(pids.map(readProcess))).flatMap((found) => found ?? [])
  const childrenOf = Map.groupBy(processes, ({ parent }) => parent)
  const tree = processes.filter(({ pid, startTime }) => pid === root.pid && startTime === root.startTime)
  for (const member of tree) tree.push(...(childrenOf.get(member.pid) ?? []))
  return tree
}
