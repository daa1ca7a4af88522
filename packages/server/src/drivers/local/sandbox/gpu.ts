import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

const folder = '/dev/dri'

/** The groups that may use the host's GPUs. Undefined on a host without one. */
export async function findGpuGroups(): Promise<readonly number[] | undefined> {
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.startsWith('renderD'))
  if (names.length === 0) return undefined
  const groups = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).gid))
  return [...new Set(groups)]
}
