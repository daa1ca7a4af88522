import type { Stats } from 'node:fs'
import { access, constants, cp, lstat, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { refuseKernelFiles } from './disk-file.ts'
import { at, type Place, refusal } from './fs-error.ts'
import { partBeside } from './transfer/staged-file.ts'

/** Renames, also across file systems. */
export async function movePath(source: string, destination: string): Promise<void> {
  const from = { field: 'src_path', path: source }
  const to = { field: 'dest_path', path: destination }
  const moved = await at(from, () => lstat(source))
  if (source === destination) return
  if (`${destination}/`.startsWith(`${source}/`)) throw refusal('dest_path', 'must not be inside src_path')
  await at(from, () => access(dirname(source), constants.W_OK))
  const above = { ...to, path: dirname(destination) }
  await at(above, () => stat(above.path))
  await at(above, () => refuseKernelFiles(above))
  await checkReplaced(moved, to)

  const isOtherDisk = await at(to, () => renameUnlessElsewhere(source, destination))
  if (isOtherDisk) await copyOver(from, to)
}

/** rename refuses this too, but with an unclear message. */
async function checkReplaced(moved: Stats, { field, path }: Place): Promise<void> {
  const replaced = await lstat(path).catch(() => undefined)
  if (!replaced || replaced.isDirectory() === moved.isDirectory()) return
  throw refusal(
    field,
    replaced.isDirectory() ? 'must not be a directory' : 'must not be a file if src_path is a directory',
  )
}

async function renameUnlessElsewhere(source: string, destination: string): Promise<boolean> {
  try {
    await rename(source, destination)
    return false
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EXDEV') return true
    throw error
  }
}

/** The copy is created beside its destination and renamed into place; only then the source is removed. */
async function copyOver(from: Place, to: Place): Promise<void> {
  await at(from, () => refuseKernelFiles({ ...from, path: dirname(from.path) }))
  const part = partBeside(to.path)
  try {
    await at(to, () => copy(from, part))
    await at(to, () => rename(part, to.path))
  } finally {
    await rm(part, { recursive: true, force: true })
  }
  await at(from, () => rm(from.path, { recursive: true }))
}

async function copy(from: Place, part: string): Promise<void> {
  try {
    await cp(from.path, part, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
  } catch (error) {
    const { code = '', path = '' } = error as NodeJS.ErrnoException
    if (code.startsWith('ERR_FS_CP_')) {
      throw refusal(from.field, 'must contain only files, directories and links', { cause: error as Error })
    }
    if (code === 'EACCES' && path.startsWith(from.path)) return at(from, () => Promise.reject(error))
    throw error
  }
}
