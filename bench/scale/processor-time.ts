import { readdir, readFile } from 'node:fs/promises'
import { cpus } from 'node:os'

/** The name of each program of the benchmark, by its command line. */
const programs: readonly (readonly [name: string, commandLine: RegExp])[] = [
  ['API server', /^kube-apiserver /],
  ['etcd', /^etcd /],
  ['scheduler', /^kube-scheduler /],
  ['controllers', /^kube-controller-manager /],
  ['kwok', /^kwok /],
  ['PostgreSQL', /^postgres: |\/postgres /],
  ['agents of all machines', /fake-pods\.ts/],
  ['client', /run-scale\.ts/],
  ['server', / serve /],
]
const ticksPerSecond = 100

/**
 * Seconds of processor time that each program has used. Read on the whole host, because the node sees only its own
 * processes.
 */
export class ProcessorTime {
  readonly #seconds: ReadonlyMap<string, number>
  readonly #hostSeconds: number
  readonly #at = performance.now()

  private constructor(seconds: ReadonlyMap<string, number>, hostSeconds: number) {
    this.#seconds = seconds
    this.#hostSeconds = hostSeconds
  }

  static async read(): Promise<ProcessorTime> {
    const seconds = new Map<string, number>()
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
      const read = (file: string) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')
      const [commandLine, stat] = [(await read('cmdline')).replaceAll('\0', ' '), await read('stat')]
      const name = programs.find(([, pattern]) => pattern.test(commandLine))?.[0] ?? 'everything else'
      const fields = stat.slice(stat.lastIndexOf(') ') + 2).split(' ')
      const ticks = Number(fields[11]) + Number(fields[12])
      if (ticks > 0) seconds.set(name, (seconds.get(name) ?? 0) + ticks / ticksPerSecond)
    }
    const [user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0] = (
      await readFile('/proc/stat', 'utf8')
    )
      .split('\n', 1)
      .flatMap((line) => line.split(/\s+/).slice(1).map(Number))
    const hostTicks = user + nice + system + interrupts + softInterrupts
    return new ProcessorTime(seconds, hostTicks / ticksPerSecond)
  }

  /** By program, the highest first. */
  since(before: ProcessorTime): readonly (readonly [name: string, seconds: number])[] {
    return [...this.#seconds]
      .map(([name, seconds]) => [name, seconds - (before.#seconds.get(name) ?? 0)] as const)
      .filter(([, seconds]) => seconds > 0.05)
      .toSorted(([, first], [, second]) => second - first)
  }

  /** The utilization of this host's processors, by any program. */
  percentSince(before: ProcessorTime): number {
    const available = ((this.#at - before.#at) / 1_000) * cpus().length
    return ((this.#hostSeconds - before.#hostSeconds) / available) * 100
  }
}
