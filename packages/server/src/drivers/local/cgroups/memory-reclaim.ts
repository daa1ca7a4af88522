import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { exists } from '@berth/runtime/files/exists.ts'

/** Why the memory of frozen machines stays where it is; undefined when it can be given back. */
export type ReclaimObstacle = 'no swap' | 'no control group' | 'no support'

interface MemoryGroup {
  readonly version: 1 | 2
  readonly folder: string
}

const usageFile = { 1: 'memory.usage_in_bytes', 2: 'memory.current' } as const
/** In version 1 a group that counts swap has two limits: of memory, and of memory with swap. berth sets both to one value. */
const limitFile = 'memory.limit_in_bytes'
const limitWithSwapFile = 'memory.memsw.limit_in_bytes'
const reclaimFile = 'memory.reclaim'
const swapLimitFile = 'memory.swap.max'
const memoryLimitFile = 'memory.max'
/** Of version 1: what is asked for at once. More than the kernel can do is refused, when it has done what it can. */
const keptShare = 1 / 4

/** `swaps` is what the kernel says of its swap areas, among which compressed memory (zram) is. */
export async function findReclaimObstacle(
  memory: MemoryGroup | undefined,
  swaps: string,
): Promise<ReclaimObstacle | undefined> {
  if (!memory) return 'no control group'
  if (swaps.trim().split('\n').length < 2) return 'no swap'
  const needed = memory.version === 1 ? limitWithSwapFile : reclaimFile
  return (await exists(join(memory.folder, needed))) ? undefined : 'no support'
}

/** A kernel without swap has no such file. */
export function readSwaps(): Promise<string> {
  return readFile('/proc/swaps', 'utf8').catch(() => '')
}

/** Has the kernel move the memory of the group to swap, and resolves with the number of bytes that this gave back. */
export async function reclaimMemory({ version, folder }: MemoryGroup): Promise<number> {
  const usage = () => readNumber(folder, usageFile[version])
  const before = await usage()
  await (version === 1 ? reclaimByLimit(folder, before) : reclaimDirectly(folder, before))
  return Math.max(0, before - (await usage()))
}

/** Also undoes what a server that was killed meanwhile has left. */
export async function restoreLimit(folder: string): Promise<void> {
  const [limit, meant] = [await readNumber(folder, limitFile), await readNumber(folder, limitWithSwapFile)]
  if (limit !== meant) await writeFile(join(folder, limitFile), String(meant))
}

async function reclaimByLimit(folder: string, usage: number): Promise<void> {
  try {
    await writeFile(join(folder, limitFile), String(Math.floor(usage * keptShare))).catch(unlessIncomplete)
  } finally {
    await restoreLimit(folder)
  }
}

/** A machine may not swap while it runs, since others would wait for the disk with it. */
async function reclaimDirectly(folder: string, usage: number): Promise<void> {
  const limit = await readFile(join(folder, memoryLimitFile), 'utf8')
  await writeFile(join(folder, swapLimitFile), limit.trim())
  try {
    await writeFile(join(folder, reclaimFile), String(usage)).catch(unlessIncomplete)
  } finally {
    await writeFile(join(folder, swapLimitFile), '0')
  }
}

/** The kernel has given back some, and could not give back more. */
function unlessIncomplete(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EBUSY' && error.code !== 'EAGAIN') throw error
}

async function readNumber(folder: string, file: string): Promise<number> {
  return Number(await readFile(join(folder, file), 'utf8'))
}
