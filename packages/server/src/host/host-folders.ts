import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { access, chmod, lstat, mkdir, readdir, realpath, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { exists } from '@berth/runtime/files/exists.ts'
import { isServed } from '@berth/runtime/process/unix-socket.ts'
import { StartError } from '../start-error.ts'

/** berth's folders on this host. Only berth's own user can enter them. */
export interface HostFolders {
  /** For what must survive a restart of the host. */
  readonly data: string
  /** For unix sockets, whose paths are limited to 107 bytes. A data folder deep in a home folder would exceed that. */
  readonly runtime: string
}

export interface HostFoldersOptions {
  readonly dataFolder: string
  /** `XDG_RUNTIME_DIR`, which an ordinary user may have. */
  readonly userRuntimeFolder: string | undefined
}

const maxSocketPathBytes = 107
const runtimeNameLength = 8
/** For the longest path below the runtime folder, `/m/<session id>/egress/egress.sock`, with some reserve. */
const reservedBytes = 64
const ownerOnly = 0o700
const endLimitMilliseconds = 2_000
const endPauseMilliseconds = 20
/** Created within a data folder that belongs to another user. */
const ownFolderName = 'berth-data'
/** A new file system contains this folder. */
const lostAndFoundFolder = 'lost+found'

/** Creates both folders. Throws a StartError that says which of them cannot be used and why. */
export async function openHostFolders(options: HostFoldersOptions): Promise<HostFolders> {
  const data = await openDataFolder(options.dataFolder)
  const base = await runtimeBase(options.userRuntimeFolder)
  // Named after the real path of the data folder, so that a restarted server finds the sockets of its machines.
  const runtime = join(base, createHash('sha256').update(data).digest('hex').slice(0, runtimeNameLength))
  await openRuntimeFolder(base)
  await openRuntimeFolder(runtime)
  return { data, runtime }
}

/**
 * Removes the runtime folder when it is unused: no machine has a folder there, and nothing listens on its sockets.
 * Waits a short time for helpers that are ending.
 */
export async function removeUnusedRuntimeFolder({ runtime }: HostFolders): Promise<void> {
  const deadline = performance.now() + endLimitMilliseconds
  while (await isInUse(runtime)) {
    if (performance.now() > deadline) return
    await delay(endPauseMilliseconds)
  }
  await rm(runtime, { recursive: true, force: true })
}

/** Sockets and the folders of machines are one level below it. */
async function isInUse(runtime: string): Promise<boolean> {
  for (const folder of await readdir(runtime)) {
    for (const entry of await readdir(join(runtime, folder), { withFileTypes: true })) {
      if (entry.isDirectory()) return true
      if (entry.isSocket() && (await isServed(join(runtime, folder, entry.name)))) return true
    }
  }
  return false
}

async function openDataFolder(path: string): Promise<string> {
  try {
    await makeFolders(path)
    const folder = await realpath(path)
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    const { mode, uid } = await lstat(folder)
    // Usually the root of a volume that somebody else created for berth. Only its owner can change its mode.
    if (uid !== process.geteuid?.() && process.geteuid?.() !== 0) return openDataFolder(join(folder, ownFolderName))
    if (isOpenToOthers(mode)) await closeToOthers(folder)
    return folder
  } catch (error) {
    if (error instanceof StartError) throw error
    throw new StartError(`The data folder ${path} cannot be used: ${(error as Error).message}`, 73, { cause: error })
  }
}

/** Node's recursive mkdir never returns for an existing folder that accepts no new ones, such as /proc. */
async function makeFolders(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: ownerOnly })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return
    if (code !== 'ENOENT' || (await exists(dirname(path)))) throw error
    await makeFolders(dirname(path))
    await mkdir(path, { mode: ownerOnly })
  }
}

/**
 * Only an empty folder is certainly meant for berth alone. Changing the mode of /tmp, for example, would break the
 * host.
 */
async function closeToOthers(folder: string): Promise<void> {
  if ((await readdir(folder)).some((name) => name !== lostAndFoundFolder)) {
    throw new StartError(`The data folder ${folder} can be entered by other users. To fix it: chmod 700 ${folder}`, 73)
  }
  await chmod(folder, ownerOnly)
}

async function runtimeBase(userRuntimeFolder: string | undefined): Promise<string> {
  const uid = process.geteuid?.()
  if (uid === 0) return '/run/berth'
  if (userRuntimeFolder !== undefined && (await isOwnFolder(userRuntimeFolder))) {
    const base = join(userRuntimeFolder, 'berth')
    if (Buffer.byteLength(base) + runtimeNameLength + reservedBytes < maxSocketPathBytes) return base
  }
  return `/tmp/berth-${uid}`
}

async function openRuntimeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: ownerOnly })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code !== 'EEXIST')
      throw new StartError(`The folder for sockets cannot be created: ${message}`, 73, { cause: error })
  }
  // In /tmp anyone can create a folder or link of this name first, and would then control the sockets.
  if (!(await isOwnFolder(path))) {
    throw new StartError(`${path} belongs to another user or is not a folder. To fix it: remove it`, 73)
  }
  await chmod(path, ownerOnly)
}

async function isOwnFolder(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined)
  return found !== undefined && found.isDirectory() && found.uid === process.geteuid?.()
}

function isOpenToOthers(mode: number): boolean {
  return (mode & 0o077) !== 0
}
