import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { exists } from '@berth/runtime/files/exists.ts'

/** Why the memory of frozen machines cannot be reclaimed. Undefined if it can. */
export type ReclaimObstacle = 'no swap' | 'no control group' | 'no support'

interface MemoryGroup {
  readonly version: 1 | 2
  readonly folder: string
}

const usageFile = { 1: 'memory.usage_in_bytes', 2: 'memory.current' } as const
/**
 * In version 1, a group that counts swap has two limits: for memory, and for memory with swap. berth sets both to the
 * same value.
 */
const limitFile = 'memory.limit_in_bytes'
const limitWithSwapFile = 'memory.memsw.limit_in_bytes'
const reclaimFile = 'memory.reclaim'
const swapLimitFile = 'memory.swap.max'
const memoryLimitFile = 'memory.max'
/**
 * For version 1: the share of memory that a single request leaves. The kernel rejects a request for more than it can
 * reclaim, after reclaiming what it can.
 */
const keptShare = 1 / 4

/** `swaps` lists the kernel's swap areas, including compressed memory (zram). */
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

/** Makes the kernel move the memory of the group to swap, and resolves with the number of bytes that became free. */
export async function reclaimMemory({ version, folder }: MemoryGroup): Promise<number> {
  const usage = () => readNumber(folder, usageFile[version])
  const before = await usage()
  await (version === 1 ? reclaimByLimit(folder, before) : reclaimDirectly(folder, before))
  return Math.max(0, before - (await usage()))
}

/** Also undoes what a killed server left. */
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

/** A machine must not swap while it runs, because others would wait for the disk too. */
async function reclaimDirectly(folder: string, usage: number): Promise<void> {
  const limit = await readFile(join(folder, memoryLimitFile), 'utf8')
  await writeFile(join(folder, swapLimitFile), limit.trim())
  try {
    await writeFile(join(folder, reclaimFile), String(usage)).catch(unlessIncomplete)
  } finally {
    await writeFile(join(folder, swapLimitFile), '0')
  }
}

/** The kernel reclaimed some memory but not all that was requested. */
function unlessIncomplete(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EBUSY' && error.code !== 'EAGAIN') throw error
}

async function readNumber(folder: string, file: string): Promise<number> {
  return Number(await readFile(join(folder, file), 'utf8'))
}
