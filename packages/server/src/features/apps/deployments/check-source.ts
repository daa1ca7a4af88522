import { BerthError } from '@berth/contract/errors.ts'
import { Archive } from '@berth/runtime/archive/archive.ts'
import { BadArchive } from '@berth/runtime/archive/archive-entry.ts'
import { someOf } from '../some-of.ts'
import { listLfsPointers } from './git-lfs-pointers.ts'

const archiveLimits = { maxEntries: 50_000, maxUnpackedBytes: 1024 ** 3 }

export interface SourceFields {
  /** The names of the entrypoint and the archive in the request. */
  readonly entrypoint: string
  readonly archive: string
}

/** Reads the whole archive, so that one that passes can be unpacked anywhere. */
export async function checkSource(path: string, entrypoint: string, fields: SourceFields): Promise<void> {
  try {
    await using archive = await Archive.open(path, archiveLimits)
    if (!archive.entries.some((entry) => entry.path === entrypoint && entry.kind === 'file')) {
      const reason = `${fields.entrypoint}: the ${fields.archive === 'file' ? 'archive' : 'repository'} contains no file ${entrypoint}.`
      throw new BerthError('bad_request', { reason })
    }
    await archive.verify()
    if (fields.archive === 'source') await refusePointers(archive)
  } catch (error) {
    if (!(error instanceof BadArchive)) throw error
    throw new BerthError('archive_refused', { field: fields.archive, reason: error.message }, { cause: error })
  }
}

/** The app would find a pointer instead of the file. */
async function refusePointers(archive: Archive): Promise<void> {
  const pointers = await listLfsPointers(archive)
  if (pointers.length === 0) return
  const reason = `source: Git LFS has the content of ${someOf(pointers)}, and only pointers are in the repository. Commit the files themselves, name a folder without them in source.path, or upload an archive.`
  throw new BerthError('bad_request', { reason })
}
