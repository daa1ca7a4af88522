import { readFile, statfs } from 'node:fs/promises'
import type { MachineId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'

const mebibyte = 1024 ** 2

/** The memory of a session until its first page has loaded. Its later use depends on its pages. */
const startBytes = 300 * mebibyte
/** By then a start has used its memory, except on the most loaded hosts. */
const startMilliseconds = 15_000

/** The resources of the host that new sessions must leave free. */
export interface HostReserve {
  readonly memoryBytes: number
  /** Free space on the file system of the data folder. */
  readonly diskBytes: number
}

/** Errors of a host that has run out of a resource: disk, files, processes, memory. */
const exhaustedCodes = ['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM']

interface HostRoomOptions {
  readonly dataFolder: string
  readonly reserve: HostReserve
  /** The memory that a machine uses. Undefined if the host does not count it. */
  readonly memoryOf: (machineId: MachineId) => Promise<number | undefined>
  /** Defaults to the host's own. */
  readonly availableMemory?: () => Promise<number>
}

/**
 * Decides whether there is room for another session. Each start reserves its memory from the request until it has used
 * it, so concurrent starts never count on the same memory.
 */
export class HostRoom {
  readonly #options: HostRoomOptions
  readonly #starts = new Map<MachineId, { readonly until: number }>()

  constructor(options: HostRoomOptions) {
    this.#options = options
  }

  /** Throws `capacity_exhausted` when there is no room for this start in addition to those in progress. */
  async take(machineId: MachineId): Promise<void> {
    // Registered before the first check, so that concurrent checks include this start.
    this.#starts.set(machineId, { until: performance.now() + startMilliseconds })
    try {
      await this.#ensure(machineId)
    } catch (error) {
      this.free(machineId)
      throw error
    }
  }

  /** Estimates the room for new sessions. Reserves nothing. */
  async look(): Promise<{ readonly memoryBytes: number; readonly sessions: number }> {
    const { reserve, availableMemory: available = availableMemory } = this.#options
    const memoryBytes = Math.max(0, (await available()) - reserve.memoryBytes)
    return { memoryBytes, sessions: Math.floor(memoryBytes / startBytes) }
  }

  /** Call when the machine is gone. */
  free(machineId: MachineId): void {
    this.#starts.delete(machineId)
  }

  async #ensure(machineId: MachineId): Promise<void> {
    const { dataFolder, reserve, availableMemory: available = availableMemory } = this.#options
    const [memory, owed, disk] = await Promise.all([available(), this.#owedMemory(machineId), freeDisk(dataFolder)])
    const neededMemory = reserve.memoryBytes + owed
    if (memory < neededMemory) throw noRoom('memory', memory, neededMemory)
    if (disk < reserve.diskBytes) throw noRoom('disk', disk, reserve.diskBytes)
  }

  /**
   * The memory that this start and earlier ones have reserved but not used yet. In a burst, only as many starts pass as
   * there is room for.
   */
  async #owedMemory(machineId: MachineId): Promise<number> {
    const now = performance.now()
    for (const [machineId, { until }] of this.#starts) {
      if (until < now) this.#starts.delete(machineId)
    }
    const asked = [...this.#starts.keys()]
    const counted = asked.slice(0, asked.indexOf(machineId) + 1)
    const taken = await Promise.all(counted.map((id) => this.#options.memoryOf(id)))
    return taken.reduce<number>((owed, bytes = 0) => owed + Math.max(0, startBytes - bytes), 0)
  }
}

/** The error for callers if the host has run out of a resource. */
export function lackOfRoomIn(error: unknown): BerthError | undefined {
  const { code, message } = error as NodeJS.ErrnoException
  if (!exhaustedCodes.includes(code ?? '')) return undefined
  return new BerthError('capacity_exhausted', { reason: message }, { cause: error })
}

function noRoom(what: string, has: number, needs: number): BerthError {
  const [available, needed] = [has, needs].map((bytes) => `${Math.floor(bytes / mebibyte)} MiB`)
  return new BerthError('capacity_exhausted', {
    reason: `${available} of ${what} are available, ${needed} are needed.`,
  })
}

/** The memory that programs can get without swapping, as the kernel estimates. */
async function availableMemory(): Promise<number> {
  const kibibytes = /^MemAvailable:\s+(\d+) kB/m.exec(await readFile('/proc/meminfo', 'utf8'))?.[1]
  return kibibytes === undefined ? Number.POSITIVE_INFINITY : Number(kibibytes) * 1024
}

async function freeDisk(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}
