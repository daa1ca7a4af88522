import { execFile } from 'node:child_process'
import { access, chmod, constants, lstat, rm, stat, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { BerthError } from '@berth/contract/errors.ts'
import { makeFolders, nearestFolder } from '@berth/runtime/files/make-folders.ts'
import { refuseKernelFiles } from './disk-file.ts'
import { at, type Place, refusal } from './fs-error.ts'

const run = promisify(execFile)

/** Folders above it get the default mode; an existing folder keeps its own. */
export async function makeFolder(path: string, mode: string): Promise<void> {
  const place = { field: 'path', path }
  await at(place, async () => {
    const existing = await stat(path).catch(() => undefined)
    if (existing?.isDirectory()) return
    const made = await makeFoldersOnDisk(place)
    if (made !== undefined) await chmod(path, Number.parseInt(mode, 8))
  })
}

/** Creates the folder and its parents, except on a file system of the kernel; returns the topmost new one. */
export async function makeFoldersOnDisk(place: Place): Promise<string | undefined> {
  const nearest = await nearestFolder(place.path)
  await refuseKernelFiles({ ...place, path: nearest })
  return makeFolders(place.path)
}

export async function deleteFile(path: string): Promise<void> {
  await at({ field: 'path', path }, async () => {
    if ((await lstat(path)).isDirectory()) throw refusal('path', 'must not be a directory')
    await unlink(path)
  })
}

/** A folder that does not exist counts as deleted. */
export async function deleteFolder(path: string): Promise<void> {
  await at({ field: 'path', path }, async () => {
    const stats = await lstat(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
    if (!stats) return
    if (!stats.isDirectory()) throw refusal('path', 'must be a directory')
    await checkRemovable(path, stats.dev)
    await removeAll(path)
  })
}

/** Called before anything is deleted: a half-deleted folder is worse than a refusal. */
async function checkRemovable(path: string, device: number): Promise<void> {
  const above = dirname(path)
  if ((await stat(above)).dev !== device || above === path) {
    throw new BerthError('forbidden', { reason: 'path: is in use by the system.' })
  }
  await access(above, constants.W_OK)
}

/** Removes what Node cannot, because of its depth or non-text names, with the system's own program. */
async function removeAll(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true })
  } catch {
    await run('/bin/rm', ['-rf', '--', path]).catch((cause) => {
      throw new BerthError('forbidden', { reason: 'path: not all of it may be deleted.' }, { cause })
    })
  }
}
