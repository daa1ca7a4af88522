import { readFile, statfs } from 'node:fs/promises'
import { BerthError } from '@berth/contract/errors.ts'

const mebibyte = 1024 ** 2

/** What a session takes until its first page has answered. How much it takes later is its pages' business. */
const startBytes = 300 * mebibyte

/** What new sessions must leave to everything else on this host. */
export interface HostReserve {
  readonly memoryBytes: number
  /** Where the data folder is. */
  readonly diskBytes: number
}

/** Errors of a host that has run out of something: disk, files, processes, memory. */
const exhaustedCodes = ['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM']

/** Throws `capacity_exhausted` unless the host has room for the starts under way, of which this is one. */
export async function ensureRoom(dataFolder: string, reserve: HostReserve, startsUnderWay: number): Promise<void> {
  const [memory, disk] = await Promise.all([availableMemory(), freeDisk(dataFolder)])
  const neededMemory = reserve.memoryBytes + startsUnderWay * startBytes
  if (memory < neededMemory) throw noRoom('memory', memory, neededMemory)
  if (disk < reserve.diskBytes) throw noRoom('disk', disk, reserve.diskBytes)
}

/** The error as callers are to see it, when it says that the host has run out of something. */
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

/** What programs can get without swapping, in the kernel's own estimate. */
async function availableMemory(): Promise<number> {
  const kibibytes = /^MemAvailable:\s+(\d+) kB/m.exec(await readFile('/proc/meminfo', 'utf8'))?.[1]
  return kibibytes === undefined ? Number.POSITIVE_INFINITY : Number(kibibytes) * 1024
}

async function freeDisk(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}
