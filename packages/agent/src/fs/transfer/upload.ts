import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { AbsolutePath } from '@berth/contract/agent/operations/fs-types.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { Archive } from '@berth/runtime/archive/archive.ts'
import { BadArchive } from '@berth/runtime/archive/archive-entry.ts'
import { mergeFolder } from '@berth/runtime/archive/merge-folder.ts'
import { unpackArchive } from '@berth/runtime/archive/unpack-archive.ts'
import { nearestFolder } from '@berth/runtime/files/make-folders.ts'
import { type FieldPath, readMultipart } from '@berth/runtime/http/multipart.ts'
import { isOfPair, pairParts } from '@berth/runtime/http/multipart-pairs.ts'
import { validate } from '@berth/runtime/http/validate.ts'
import { refuseKernelFiles } from '../disk-file.ts'
import { at, refusal } from '../fs-error.ts'
import { archiveLimits } from './archive-limits.ts'
import { partBeside, partPrefix, StagedFile } from './staged-file.ts'

const maxFiles = 1000

/** Writes all files of a `multipart/form-data` body, or none. */
export async function uploadFiles(request: IncomingMessage): Promise<void> {
  const members = { list: 'files', file: 'file', text: 'dest_path', mayBeBare: true }
  const parts = readMultipart(request, {
    headers: request.headers,
    isKnown: (path) => isOfPair(path, members),
    isFile: (path) => path.at(-1) === 'file',
    maxParts: 2 * maxFiles,
    maxFileBytes: Number.POSITIVE_INFINITY,
  })
  const pairs = pairParts(parts, {
    ...members,
    maxPairs: maxFiles,
    temporaryFolder: tmpdir(),
  })
  const staged: StagedFile[] = []
  try {
    // For files whose path has not arrived yet: the temporary folder may be full.
    await at({ field: 'files', path: tmpdir() }, async () => {
      for await (const { label, text, content } of pairs) {
        const field = label === 'dest_path' || label === 'file' ? 'dest_path' : `${label}[dest_path]`
        const file = await StagedFile.open({ field, path: destination(text, field) })
        staged.push(file)
        await file.fill(content)
      }
    })
    for (const file of staged) await file.commit()
  } finally {
    for (const file of staged.toReversed()) await file.discard()
  }
}

/** Unpacks a whole archive over the existing files, or nothing if it is invalid. */
export async function uploadArchive(request: IncomingMessage): Promise<void> {
  const folder = await at({ field: 'zip_file', path: tmpdir() }, () => mkdtemp(join(tmpdir(), partPrefix)))
  try {
    const archivePath = join(folder, 'archive.zip')
    const path = await receiveArchive(request, archivePath)
    await unpackOver(archivePath, path)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Writes the archive to the given path, and returns the folder to unpack it to. */
async function receiveArchive(request: IncomingMessage, archivePath: string): Promise<string> {
  const parts = readMultipart(request, {
    headers: request.headers,
    isKnown: (path) => isField(path, 'zip_file') || isField(path, 'dest_path'),
    isFile: (path) => isField(path, 'zip_file'),
    maxParts: 10, // Enough to name the first excess part.
    maxFileBytes: archiveLimits.maxUnpackedBytes,
  })
  let path: string | undefined
  let hasArchive = false
  for await (const part of parts) {
    if (part.kind === 'file') {
      if (hasArchive) throw refusal('zip_file', 'must be given once')
      hasArchive = true
      const { content } = part
      await at({ field: 'zip_file', path: archivePath }, () => pipeline(content, createWriteStream(archivePath)))
    } else {
      if (path !== undefined) throw refusal('dest_path', 'must be given once')
      path = destination(part.text, 'dest_path')
    }
  }
  if (!hasArchive) throw refusal('zip_file', 'is missing')
  if (path === undefined) throw refusal('dest_path', 'is missing')
  return path
}

async function unpackOver(archivePath: string, path: string): Promise<void> {
  const place = { field: 'dest_path', path }
  // On the file system of the destination, so that unpacked files are moved, not copied.
  const nearest = await at(place, () => folderAtOrAbove(path))
  await at({ ...place, path: nearest }, () => refuseKernelFiles({ ...place, path: nearest }))
  const unpacked = partBeside(join(nearest, 'unpacked'))
  try {
    await using archive = await Archive.open(archivePath, archiveLimits)
    await at(place, () => unpackArchive(archive, { folder: unpacked }))
    await at(place, () => mergeFolder(unpacked, path))
  } catch (error) {
    if (!(error instanceof BadArchive)) throw error
    throw new BerthError(
      'archive_refused',
      { field: 'zip_file', reason: error.message.replace(/\.$/, '') },
      { cause: error },
    )
  } finally {
    await rm(unpacked, { recursive: true, force: true })
  }
}

async function folderAtOrAbove(path: string): Promise<string> {
  return nearestFolder(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') throw refusal('dest_path', 'must be a directory, or not exist yet')
    throw error
  })
}

function destination(text: string, field: string): string {
  return validate(AbsolutePath, text.trim(), field)
}

function isField(path: FieldPath, name: string): boolean {
  return path.length === 1 && path[0] === name
}
