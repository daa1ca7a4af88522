import { BerthError } from '@berth/contract/errors.ts'
import type { SpawnedProcess } from './spawned-process.ts'

const defaultMaxRunning = 256
/** Clients expect at least ten seconds to learn how a process ended. */
const rememberedMilliseconds = 60_000

/** Spawned processes by id: running ones, and ended ones for a minute. */
export class ProcessTable {
  readonly #processes = new Map<string, SpawnedProcess>()
  readonly #maxRunning: number
  #running = 0

  constructor(maxRunning: number = defaultMaxRunning) {
    this.#maxRunning = maxRunning
  }

  /** Enforces the limit for concurrent calls: a slot is taken before the program starts. */
  async add(start: () => Promise<SpawnedProcess>): Promise<SpawnedProcess> {
    if (this.#running >= this.#maxRunning) throw new BerthError('too_many_processes', { limit: this.#maxRunning })
    this.#running += 1
    try {
      const process = await start()
      this.#processes.set(process.id, process)
      void process.ended.then(() => this.#forgetLater(process))
      return process
    } catch (error) {
      this.#running -= 1
      throw error
    }
  }

  get(processId: string): SpawnedProcess {
    const process = this.#processes.get(processId)
    if (!process) throw new BerthError('process_not_found', { processId })
    return process
  }

  #forgetLater({ id }: SpawnedProcess): void {
    this.#running -= 1
    setTimeout(() => this.#processes.delete(id), rememberedMilliseconds).unref()
  }
}
