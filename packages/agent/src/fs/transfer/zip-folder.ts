import { constants, type Stats } from 'node:fs'
import { access, lstat, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { PassThrough } from 'node:stream'
import { finished } from 'node:stream/promises'
import { BerthError } from '@berth/contract/errors.ts'
import { ZipFile } from 'yazl' // By the author of yauzl: streams, supports links and archives above 4 GiB.
import { Content } from '../../operations/served-operation.ts'
import { checkFolder, openDiskFile, refuseKernelFiles } from '../disk-file.ts'
import { at, refusal } from '../fs-error.ts'
import { archiveLimits } from './archive-limits.ts'

/** The contents of a folder as a zip archive, packed while it is sent. Pipes, sockets and devices are left out. */
export async function zipFolder(folder: string, signal: AbortSignal): Promise<Content> {
  await checkFolder({ field: 'path', path: folder })
  const members = await at({ field: 'path', path: folder }, () => listMembers(folder))
  const archive = new ZipFile()
  const output = archive.outputStream as PassThrough
  archive.on('error', (error: Error) => output.destroy(error))
  // Packing also stops when the caller disconnects.
  pack(archive, members, signal).catch((error: Error) => output.destroy(error))
  return new Content(output)
}

interface Member {
  readonly path: string
  /** Relative to the folder. */
  readonly name: string
  readonly stats: Stats
}

/**
 * Examines everything before the response begins, so that an unreadable file is an error and not a truncated archive.
 */
async function listMembers(root: string): Promise<readonly Member[]> {
  const members: Member[] = []
  const open: { path: string; prefix: string }[] = [{ path: root, prefix: '' }]
  for (let folder = open.pop(); folder; folder = open.pop()) {
    for (const name of (await readdir(folder.path)).sort()) {
      const member = await lookAt(join(folder.path, name), `${folder.prefix}${name}`)
      if (!member) continue
      members.push(member)
      if (members.length > archiveLimits.maxEntries) {
        throw refusal('path', `must not hold more than ${archiveLimits.maxEntries} files`)
      }
      if (member.stats.isDirectory()) open.push({ path: member.path, prefix: `${member.name}/` })
    }
  }
  return members
}

/** Undefined for files that do not belong in an archive, or were deleted. */
async function lookAt(path: string, name: string): Promise<Member | undefined> {
  const stats = await lstat(path).catch(ignoreAbsence)
  if (!stats || !(stats.isFile() || stats.isDirectory() || stats.isSymbolicLink())) return undefined
  try {
    if (stats.isDirectory()) await refuseKernelFiles({ field: 'path', path })
    if (!stats.isSymbolicLink()) await access(path, constants.R_OK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    const reason = `path: the user of the session may not read ${JSON.stringify(name)} in it.`
    throw new BerthError('forbidden', { reason }, { cause: error })
  }
  return { path, name, stats }
}

async function pack(archive: ZipFile, members: readonly Member[], signal: AbortSignal): Promise<void> {
  for (const { path, name, stats } of members) {
    signal.throwIfAborted()
    const head = { mtime: stats.mtime, mode: stats.mode }
    if (stats.isDirectory()) archive.addEmptyDirectory(name, head)
    else if (stats.isSymbolicLink()) archive.addBuffer(await readlink(path, 'buffer'), name, head)
    else await packFile(archive, { path, name, head, signal })
  }
  archive.end()
}

interface PackedFile {
  readonly path: string
  readonly name: string
  readonly head: { readonly mtime: Date; readonly mode: number }
  readonly signal: AbortSignal
}

/** Opens one file at a time. A file deleted after it was listed is left out. */
async function packFile(archive: ZipFile, { path, name, head, signal }: PackedFile): Promise<void> {
  const handle = await openDiskFile({ field: 'path', path }).catch(ignoreMissingFile)
  if (!handle) return
  const content = handle.createReadStream()
  try {
    archive.addReadStream(content, name, head)
    await finished(content, { signal })
  } finally {
    content.destroy()
  }
}

function ignoreAbsence(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

function ignoreMissingFile(error: unknown): undefined {
  if (!(error instanceof BerthError)) throw error
}
