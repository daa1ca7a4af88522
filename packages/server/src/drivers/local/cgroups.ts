import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { settleAll } from './settle-all.ts'

export interface MachineLimits {
  readonly memoryBytes: number
  /** Processes and their threads together. */
  readonly tasks: number
}

type Controller = 'memory' | 'pids' | 'freezer'

/** A folder below which berth may make groups that have the controllers. */
export interface Hierarchy {
  readonly version: 1 | 2
  readonly folder: string
  readonly controllers: readonly Controller[]
}

const stateLimitMilliseconds = 5_000

/** The control groups of this host's machines: limits, and the freezer. A machine has one group in each hierarchy. */
export class Cgroups {
  readonly #hierarchies: readonly Hierarchy[]
  readonly #prefix: string

  /** `prefix` begins the name of each group and tells the machines of one data folder from those of another. */
  constructor(hierarchies: readonly Hierarchy[], prefix: string) {
    this.#hierarchies = hierarchies
    this.#prefix = prefix
  }

  get canLimit(): boolean {
    return this.#find('memory') !== undefined && this.#find('pids') !== undefined
  }

  get canFreeze(): boolean {
    return this.#find('freezer') !== undefined
  }

  /** Makes the groups of a machine and returns their folders, for its first process to enter. */
  async open(name: string, { memoryBytes, tasks }: MachineLimits): Promise<readonly string[]> {
    const groups = this.#hierarchies.map((hierarchy) => ({ ...hierarchy, folder: this.#folder(hierarchy, name) }))
    await settleAll(groups.map((group) => mkdir(group.folder)))
    await settleAll(groups.map((group) => limit(group, memoryBytes, tasks)))
    return groups.map(({ folder }) => folder)
  }

  /** How often the kernel has ended a process of the machine for want of memory within its limit. */
  async countMemoryKills(name: string): Promise<number> {
    const hierarchy = this.#find('memory')
    if (!hierarchy) return 0
    const file = hierarchy.version === 1 ? 'memory.oom_control' : 'memory.events'
    // A machine that is gone has no group.
    const text = await readFile(join(this.#folder(hierarchy, name), file), 'utf8').catch(() => '')
    return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0)
  }

  freeze(name: string): Promise<void> {
    return this.#setFrozen(name, true)
  }

  /** A group that is not there, or not frozen, is fine. */
  thaw(name: string): Promise<void> {
    return this.#setFrozen(name, false)
  }

  /** Removes the groups of a machine; those that are not there are fine. */
  async remove(name: string): Promise<void> {
    await settleAll(this.#hierarchies.map((hierarchy) => removeGroup(this.#folder(hierarchy, name))))
  }

  async #setFrozen(name: string, isFrozen: boolean): Promise<void> {
    const hierarchy = this.#find('freezer')
    if (!hierarchy) return
    const folder = this.#folder(hierarchy, name)
    try {
      await (hierarchy.version === 1 ? setStateV1(folder, isFrozen) : setStateV2(folder, isFrozen))
    } catch (error) {
      if (isFrozen || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }

  #find(controller: Controller): Hierarchy | undefined {
    return this.#hierarchies.find(({ controllers }) => controllers.includes(controller))
  }

  #folder({ folder }: Hierarchy, name: string): string {
    return join(folder, `${this.#prefix}-${name}`)
  }
}

async function limit({ version, folder, controllers }: Hierarchy, memoryBytes: number, tasks: number): Promise<void> {
  if (controllers.includes('pids')) await writeFile(join(folder, 'pids.max'), String(tasks))
  if (!controllers.includes('memory')) return
  const [memory, swap, allowedSwap] =
    version === 1
      ? (['memory.limit_in_bytes', 'memory.memsw.limit_in_bytes', memoryBytes] as const)
      : (['memory.max', 'memory.swap.max', 0] as const)
  await writeFile(join(folder, memory), String(memoryBytes))
  // A kernel without accounting for swap lacks this file, and then a machine may swap beyond its limit.
  await writeFile(join(folder, swap), String(allowedSwap)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT' && error.code !== 'EACCES') throw error
  })
}

async function setStateV1(folder: string, isFrozen: boolean): Promise<void> {
  const state = isFrozen ? 'FROZEN' : 'THAWED'
  const file = join(folder, 'freezer.state')
  await writeFile(file, state)
  await waitUntil(async () => (await readFile(file, 'utf8')).trim() === state, folder)
}

async function setStateV2(folder: string, isFrozen: boolean): Promise<void> {
  const state = isFrozen ? '1' : '0'
  await writeFile(join(folder, 'cgroup.freeze'), state)
  await waitUntil(
    async () => (await readFile(join(folder, 'cgroup.events'), 'utf8')).includes(`frozen ${state}`),
    folder,
  )
}

async function waitUntil(isReached: () => Promise<boolean>, folder: string): Promise<void> {
  const deadline = performance.now() + stateLimitMilliseconds
  for (let wait = 1; !(await isReached()); wait = Math.min(wait * 2, 50)) {
    if (performance.now() > deadline) throw new Error(`the control group ${folder} does not change its state`)
    await delay(wait)
  }
}

/** A group counts as busy until the kernel has cleared the last of its processes, which their parent does not wait for. */
async function removeGroup(folder: string): Promise<void> {
  const deadline = performance.now() + stateLimitMilliseconds
  for (let wait = 1; ; wait = Math.min(wait * 2, 50)) {
    try {
      return await rmdir(folder)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') return
      if (code !== 'EBUSY' || performance.now() > deadline) throw error
    }
    await delay(wait)
  }
}
