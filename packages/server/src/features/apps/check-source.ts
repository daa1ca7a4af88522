import { BerthError } from '@berth/contract/errors.ts'
import { Archive } from '@berth/runtime/archive/archive.ts'
import { BadArchive } from '@berth/runtime/archive/archive-entry.ts'

const archiveLimits = { maxEntries: 50_000, maxUnpackedBytes: 1024 ** 3 }

export interface SourceFields {
  /** Of the entrypoint and of the archive, as its owner knows them. */
  readonly entrypoint: string
  readonly archive: string
}

/** Reads the whole archive, so that one that passes can be unpacked anywhere. */
export async function checkSource(path: string, entrypoint: string, fields: SourceFields): Promise<void> {
  try {
    await using archive = await Archive.open(path, archiveLimits)
    if (!archive.entries.some((entry) => entry.path === entrypoint && entry.kind === 'file')) {
      const reason = `${fields.entrypoint}: the ${fields.archive === 'file' ? 'archive' : 'repository'} holds no file ${entrypoint}.`
      throw new BerthError('bad_request', { reason })
    }
    await archive.verify()
  } catch (error) {
    if (!(error instanceof BadArchive)) throw error
    throw new BerthError('archive_refused', { field: fields.archive, reason: error.message }, { cause: error })
  }
}
