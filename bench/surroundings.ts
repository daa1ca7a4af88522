import { cpus, loadavg, release, totalmem } from 'node:os'

/** The machine of a run. Figures of different machines cannot be compared. */
export interface Surroundings {
  readonly date: string
  readonly processors: string
  readonly memoryGiB: number
  readonly kernel: string
  readonly node: string
  /** The load average of the last minute. Well above zero means that other programs used the machine too. */
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
