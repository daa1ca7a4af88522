import { readdir, readFile, readlink } from 'node:fs/promises'
import { listProcesses, type ProcessInfo } from '../e2e/testing/processes.ts'
import type { PartProcess, Service } from './services/service.ts'

/** Finds processes whose command contains the folder or that write to a file in it, and their descendants. */
export async function findProcesses(folder: string): Promise<readonly ProcessInfo[]> {
  const all = await listProcesses()
  const children = Map.groupBy(all, ({ parent }) => parent)
  const isRoot = await Promise.all(
    all.map(async ({ pid, command }) => command.includes(folder) || (await outputOf(pid)).startsWith(folder)),
  )
  const found = new Map<number, ProcessInfo>()
  const add = (info: ProcessInfo): void => {
    if (found.has(info.pid) || info.pid === process.pid) return
    found.set(info.pid, info)
    for (const child of children.get(info.pid) ?? []) add(child)
  }
  for (const [index, info] of all.entries()) if (isRoot[index]) add(info)
  return [...found.values()]
}

function outputOf(pid: number): Promise<string> {
  return readlink(`/proc/${pid}/fd/1`).catch(() => '')
}

/** A number per part. */
export type PartSums = ReadonlyMap<string, number>

/** Memory in MiB, with shared memory divided among processes (PSS). */
export function memoryByPart(processes: readonly PartProcess[]): Promise<PartSums> {
  return sumByPart(processes, async (pid) => {
    const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8')
    return Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0) / 1024
  })
}

/** The processor time of each process since its start, in milliseconds. */
async function processorTimes(processes: readonly PartProcess[]): Promise<ReadonlyMap<number, number>> {
  const times = await Promise.all(
    processes.map(async ({ pid }) => [pid, await unlessEnded(processorTime(pid))] as const),
  )
  return new Map(times)
}

async function processorTime(pid: number): Promise<number> {
  // /proc/<pid>/stat counts in ticks of 10 ms, and an idle process may use less than one.
  const threads = await readdir(`/proc/${pid}/task`)
  const texts = await Promise.all(threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8')))
  return texts.reduce((sum, text) => sum + Number(text.split(' ')[0]) / 1e6, 0)
}

/** Milliseconds of processor time that the service uses during `work`. Omits processes that end meanwhile. */
export async function processorTimeDuring<Result>(
  service: Service,
  work: () => Promise<Result>,
): Promise<{ readonly used: PartSums; readonly result: Result }> {
  const before = await processorTimes(await service.processes())
  const result = await work()
  const processes = await service.processes()
  const after = await processorTimes(processes)
  const used = await sumByPart(processes, async (pid) => Math.max(0, (after.get(pid) ?? 0) - (before.get(pid) ?? 0)))
  return { used, result }
}

async function sumByPart(
  processes: readonly PartProcess[],
  measure: (pid: number) => Promise<number>,
): Promise<PartSums> {
  const sums = new Map<string, number>()
  for (const { pid, part } of processes) sums.set(part, (sums.get(part) ?? 0) + (await unlessEnded(measure(pid))))
  return sums
}

/** 0 for a process that has ended. Other errors are thrown, because the sum would be too small. */
function unlessEnded(value: Promise<number>): Promise<number> {
  return value.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return 0
    throw error
  })
}

/** Whether the process is in a frozen control group, or stopped. */
export async function isFrozen(pid: number): Promise<boolean> {
  const read = (path: string) => readFile(path, 'utf8').catch(() => '')
  const [groups, status] = await Promise.all([read(`/proc/${pid}/cgroup`), read(`/proc/${pid}/status`)])
  const [, old] = /^\d+:(?:\w+,)*freezer(?:,\w+)*:(.*)$/m.exec(groups) ?? []
  const [, unified] = /^0::(.*)$/m.exec(groups) ?? []
  if (/^State:\s+T/m.test(status)) return true
  if (old && (await read(`/sys/fs/cgroup/freezer${old}/freezer.state`)).trim() === 'FROZEN') return true
  return unified !== undefined && (await read(`/sys/fs/cgroup${unified}/cgroup.events`)).includes('frozen 1')
}

/** `after` minus `before`, for every part in either. */
export function differenceByPart(before: PartSums, after: PartSums): PartSums {
  const parts = new Set([...before.keys(), ...after.keys()])
  return new Map([...parts].map((part) => [part, (after.get(part) ?? 0) - (before.get(part) ?? 0)]))
}
