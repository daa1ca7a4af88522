import { constants, type Stats } from 'node:fs'
import { type FileHandle, open, stat, statfs } from 'node:fs/promises'
import { BerthError } from '@berth/contract/errors.ts'
import { at, type Place, refusal } from './fs-error.ts'

/**
 * File systems whose files are answers of the kernel: /proc, /sys and similar. Reading such a file may never end, and
 * writing may change the agent itself (`/proc/self/mem`).
 */
const kernelFileSystems: ReadonlySet<number> = new Set([
  0x9fa0, // proc
  0x62656572, // sysfs
  0x27e0eb, // cgroup
  0x63677270, // cgroup2
  0x1cd1, // devpts
  0x6e736673, // nsfs
  0x19800202, // mqueue
])

/** Opens a regular file for reading; refuses pipes (which could block), devices and kernel files. */
export async function openDiskFile(place: Place): Promise<FileHandle> {
  return at(place, async () => {
    const { O_RDONLY, O_NONBLOCK, O_NOCTTY } = constants
    const handle = await open(place.path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
    try {
      checkRegular(await handle.stat(), place)
      await refuseKernelFiles({ ...place, path: `/proc/self/fd/${handle.fd}` })
      return handle
    } catch (error) {
      await handle.close()
      throw error
    }
  })
}

/** Refuses a path on a file system of the kernel. */
export async function refuseKernelFiles({ field, path }: Place): Promise<void> {
  const { type } = await statfs(path)
  if (!kernelFileSystems.has(type)) return
  throw new BerthError('forbidden', { reason: `${field}: is a file of the kernel, not of a disk.` })
}

/** Refuses everything except a directory on a disk. */
export async function checkFolder(place: Place): Promise<void> {
  await at(place, async () => {
    if (!(await stat(place.path)).isDirectory()) throw refusal(place.field, 'must be a directory')
    await refuseKernelFiles(place)
  })
}

export function checkRegular(stats: Stats, { field }: Place): void {
  if (!stats.isFile()) throw refusal(field, `must be a regular file, not a ${kindOf(stats)}`)
}

function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return 'directory'
  if (stats.isFIFO()) return 'pipe'
  if (stats.isSocket()) return 'socket'
  return 'device'
}
