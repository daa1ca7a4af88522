import { readdirSync, readFileSync } from 'node:fs'

const intervalMilliseconds = 5_000
const topTasks = 5
const pageKilobytes = 4

interface Task {
  readonly name: string
  readonly pid: number
  readonly rss_kb: number
}

/**
 * Periodic snapshots of the machine's processes: the kernel reports how many processes it has killed, but not which.
 * The largest of those missing since the last snapshot are assumed to be the killed ones.
 */
export class ProcessSnapshots {
  #known: readonly Task[] = []
  readonly #timer: NodeJS.Timeout

  constructor() {
    this.#known = readTasks()
    this.#timer = setInterval(() => {
      this.#known = readTasks()
    }, intervalMilliseconds)
    this.#timer.unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Details of the killed processes. */
  killed(count: number): readonly Record<string, unknown>[] {
    const running = readTasks()
    const pids = new Set(running.map(({ pid }) => pid))
    const gone = this.#known.filter(({ pid }) => !pids.has(pid)).toSorted(bySize)
    this.#known = running
    const memory = readMemory()
    return Array.from({ length: Math.min(count, 100) }, (_, index) => {
      const { name, pid, rss_kb } = gone[index] ?? { name: 'unknown', pid: 0, rss_kb: 0 }
      return {
        process_name: name,
        pid,
        rss_kb,
        constraint: 'memcg',
        ...memory,
        top_tasks: running.toSorted(bySize).slice(0, topTasks),
      }
    })
  }
}

const bySize = (one: Task, other: Task) => other.rss_kb - one.rss_kb

function readTasks(): readonly Task[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const resident = Number(readFileSync(`/proc/${name}/statm`, 'utf8').split(' ')[1])
      const command = readFileSync(`/proc/${name}/comm`, 'utf8').trim()
      return [{ name: command, pid: Number(name), rss_kb: resident * pageKilobytes }]
    } catch {
      return [] // It has just ended.
    }
  })
}

function readMemory(): Record<string, number> {
  const text = readFileSync('/proc/meminfo', 'utf8')
  const of = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0)
  return { mem_total_kb: of('MemTotal'), mem_free_kb: of('MemFree') }
}
