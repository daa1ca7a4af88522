import { writeFileSync } from 'node:fs'
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { settleAll } from '@berth/runtime/async/settle-all.ts'
import { exists } from '@berth/runtime/files/exists.ts'
import { findReclaimObstacle, readSwaps, reclaimMemory, restoreLimit } from './memory-reclaim.ts'
import { groupsOf, type OwnGroup } from './own-groups.ts'

export interface MachineLimits {
  readonly memoryBytes: number
  /** The number of processes and threads. */
  readonly tasks: number
  /** Whether other machines take precedence for the processor. */
  readonly isLow?: boolean
}

type Controller = 'memory' | 'pids' | 'freezer' | 'cpu'

/** A folder below which berth can create groups with these controllers. */
export interface Hierarchy {
  readonly version: 1 | 2
  readonly folder: string
  readonly controllers: readonly Controller[]
}

/** The resources of a machine that the groups of these hierarchies can limit, as text. */
export async function findBounds(hierarchies: readonly Hierarchy[]): Promise<readonly string[]> {
  const find = (name: Controller) => hierarchies.find(({ controllers }) => controllers.includes(name))
  const memory = find('memory')
  const countsConnections = memory?.version === 2 || (memory && (await exists(join(memory.folder, tcpLimit))))
  return [
    ...(memory ? ['memory'] : []),
    ...(countsConnections ? ['memory of connections'] : []),
    ...(find('pids') ? ['processes'] : []),
    ...(find('cpu') ? ['share of the processor'] : []),
  ]
}

const stateLimitMilliseconds = 5_000
/**
 * The kernel's memory for the TCP connections of a machine, where it is counted separately. In version 2 it is part of
 * the other memory.
 */
const tcpBytes = 64 * 1024 ** 2
const tcpLimit = 'memory.kmem.tcp.limit_in_bytes'
/**
 * Machines share the processor equally, regardless of their number of threads. In version 1, a process without a group
 * of its own, such as the server, counts half as much as a machine: a start consists of the work of many threads at
 * once.
 */
const cpuShare = { 1: ['cpu.shares', '2048'], 2: ['cpu.weight', '100'] } as const
const lowShare = { 1: '256', 2: '12' } as const

/** The control groups of this host's machines: limits and the freezer. A machine has one group in each hierarchy. */
export class Cgroups {
  readonly #hierarchies: readonly Hierarchy[]
  readonly #prefix: string
  /** The groups of machines that an earlier server started, perhaps from another group. */
  readonly #located = new Map<string, ReadonlyMap<Hierarchy, string>>()
  /** The machines whose memory was reclaimed. */
  readonly #reclaimed = new Set<string>()

  /** `prefix` starts the name of each group and distinguishes the machines of different data folders. */
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

  /** Finds the groups of a running machine by one of its processes. */
  async locate(name: string, pid: number): Promise<void> {
    const found = (await groupsOf(pid)).filter(({ path }) => basename(path) === `${this.#prefix}-${name}`)
    const folderOf = ({ version, controllers }: Hierarchy) => {
      const isMeant = (group: OwnGroup) =>
        group.version === version && (version === 2 || controllers.every((one) => group.controllers.includes(one)))
      const group = found.find(isMeant)
      return group && join(group.mount, group.path)
    }
    const entries = this.#hierarchies.map((hierarchy) => [hierarchy, folderOf(hierarchy)] as const)
    this.#located.set(name, new Map(entries.flatMap(([hierarchy, folder]) => (folder ? [[hierarchy, folder]] : []))))
  }

  /** Creates the groups of a machine and returns their folders, which its first process enters. */
  async open(name: string, limits: MachineLimits): Promise<readonly string[]> {
    const groups = this.#hierarchies.map((hierarchy) => ({ ...hierarchy, folder: this.#folder(hierarchy, name) }))
    await settleAll(groups.map((group) => mkdir(group.folder)))
    await settleAll(groups.map((group) => limit(group, limits)))
    return groups.map(({ folder }) => folder)
  }

  /**
   * Lets everything else on the host run first: tasks that wake up do not wait for the machine. On a kernel without
   * this feature, the machine keeps its low share.
   */
  makeIdle(name: string): void {
    const hierarchy = this.#find('cpu')
    if (hierarchy) writeIdle(this.#folder(hierarchy, name), true)
  }

  /** Gives a machine with a low share of the processor the same share as others. Synchronous, like the thaw. */
  raiseShare(name: string): void {
    const hierarchy = this.#find('cpu')
    if (!hierarchy) return
    const folder = this.#folder(hierarchy, name)
    const [file, share] = cpuShare[hierarchy.version]
    // Must come first: the share of an idle group cannot be changed.
    writeIdle(folder, false)
    writeFileSync(join(folder, file), share)
  }

  /** How often the kernel killed a process of the machine because of its memory limit. */
  async countMemoryKills(name: string): Promise<number> {
    const hierarchy = this.#find('memory')
    if (!hierarchy) return 0
    const file = hierarchy.version === 1 ? 'memory.oom_control' : 'memory.events'
    // A machine that is gone has no group.
    const text = await readFile(join(this.#folder(hierarchy, name), file), 'utf8').catch(() => '')
    return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0)
  }

  /** The memory that the machine uses. Undefined if it is not counted or the machine is gone. */
  async readMemory(name: string): Promise<number | undefined> {
    const hierarchy = this.#find('memory')
    if (!hierarchy) return undefined
    const file = hierarchy.version === 1 ? 'memory.usage_in_bytes' : 'memory.current'
    const text = await readFile(join(this.#folder(hierarchy, name), file), 'utf8').catch(() => undefined)
    return text === undefined ? undefined : Number(text)
  }

  /** The processes of the machine, if there are groups. */
  async listProcesses(name: string): Promise<readonly number[]> {
    const hierarchy = this.#hierarchies[0]
    if (!hierarchy) return []
    const text = await readFile(join(this.#folder(hierarchy, name), 'cgroup.procs'), 'utf8').catch(() => '')
    return text.split('\n').filter(Boolean).map(Number)
  }

  freeze(name: string): Promise<void> {
    return this.#setFrozen(name, true)
  }

  /** Succeeds for a group that does not exist or is not frozen. */
  async thaw(name: string): Promise<void> {
    await this.#restoreLimit(name)
    await this.#setFrozen(name, false)
  }

  /** False for a group that does not exist. */
  async isFrozen(name: string): Promise<boolean> {
    const hierarchy = this.#find('freezer')
    if (!hierarchy) return false
    const { version } = hierarchy
    const file = join(this.#folder(hierarchy, name), version === 1 ? 'freezer.state' : 'cgroup.freeze')
    const text = await readFile(file, 'utf8').catch(() => '')
    return version === 1 ? text.trim() !== 'THAWED' && text !== '' : text.trim() === '1'
  }

  /** Removes the groups of a machine. Ignores missing ones. */
  async remove(name: string): Promise<void> {
    await settleAll(this.#hierarchies.map((hierarchy) => removeGroup(this.#folder(hierarchy, name))))
    this.#located.delete(name)
    this.#reclaimed.delete(name)
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

  /** Returns memory of a frozen machine to the host, if the kernel can, and resolves with the number of bytes. */
  async reclaim(name: string): Promise<number> {
    const memory = this.#find('memory')
    if ((await findReclaimObstacle(memory, await readSwaps())) !== undefined || !memory) return 0
    this.#reclaimed.add(name)
    return reclaimMemory({ version: memory.version, folder: this.#folder(memory, name) })
  }

  /** A server that was killed during a reclaim may have left a low limit. */
  async #restoreLimit(name: string): Promise<void> {
    const memory = this.#find('memory')
    if (memory?.version !== 1 || !(this.#reclaimed.has(name) || this.#located.has(name))) return
    // A kernel that does not count swap has no limit to compare with, so none was changed.
    await restoreLimit(this.#folder(memory, name)).catch(() => {})
  }

  #find(controller: Controller): Hierarchy | undefined {
    return this.#hierarchies.find(({ controllers }) => controllers.includes(controller))
  }

  #folder(hierarchy: Hierarchy, name: string): string {
    return this.#located.get(name)?.get(hierarchy) ?? join(hierarchy.folder, `${this.#prefix}-${name}`)
  }
}

async function limit(
  { version, folder, controllers }: Hierarchy,
  { memoryBytes, tasks, isLow }: MachineLimits,
): Promise<void> {
  const [shareFile, share] = cpuShare[version]
  if (controllers.includes('cpu')) await writeFile(join(folder, shareFile), isLow ? lowShare[version] : share)
  if (controllers.includes('pids')) await writeFile(join(folder, 'pids.max'), String(tasks))
  if (!controllers.includes('memory')) return
  const [memory, swap, allowedSwap] =
    version === 1
      ? (['memory.limit_in_bytes', 'memory.memsw.limit_in_bytes', memoryBytes] as const)
      : (['memory.max', 'memory.swap.max', 0] as const)
  await writeFile(join(folder, memory), String(memoryBytes))
  // A kernel without swap accounting lacks this file. A machine may then swap beyond its limit.
  await writeIfPresent(join(folder, swap), allowedSwap)
  if (version === 1) await writeIfPresent(join(folder, tcpLimit), tcpBytes)
}

/** Nothing can be created in these folders: a missing file is reported as EACCES. */
async function writeIfPresent(path: string, value: number): Promise<void> {
  await writeFile(path, String(value)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT' && error.code !== 'EACCES') throw error
  })
}

function writeIdle(folder: string, isIdle: boolean): void {
  try {
    writeFileSync(join(folder, 'cpu.idle'), isIdle ? '1' : '0')
  } catch (error) {
    // A missing file is reported as EACCES, because it cannot be created. The same happens when the machine is gone.
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT' && code !== 'EACCES' && code !== 'EPERM') throw error
  }
}

async function setStateV1(folder: string, isFrozen: boolean): Promise<void> {
  const state = isFrozen ? 'FROZEN' : 'THAWED'
  const file = join(folder, 'freezer.state')
  // The kernel resumes the group before the write returns, within 0.1 ms. An asynchronous write would take several
  // turns of this process's threads, each competing with the machine.
  if (!isFrozen) return writeFileSync(file, state)
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

/** A group is busy until the kernel has removed the last of its processes, which their parent does not wait for. */
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
