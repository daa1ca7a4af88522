import { cpus, loadavg, release, totalmem } from 'node:os'

/** On what a run was made: figures of other machines are other figures. */
export interface Surroundings {
  readonly date: string
  readonly processors: string
  readonly memoryGiB: number
  readonly kernel: string
  readonly node: string
  /** Processes that wanted to run, over the last minute: well above zero, and others had the machine too. */
  readonly loadBefore: number
  readonly loadAfter: number
}

export function surroundings(date: Date, loadBefore: number): Surroundings {
  const processors = cpus()
  return {
    date: date.toISOString(),
    processors: `${processors.length} x ${processors[0]?.model ?? 'unknown'}`,
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    node: process.version,
    loadBefore,
    loadAfter: currentLoad(),
  }
}

export function currentLoad(): number {
  return loadavg()[0] ?? 0
}
