import { constants } from 'node:fs'
import { access, lstat, readdir, stat } from 'node:fs/promises'
import type { FileInfo } from '@berth/contract/agent/operations/fs-types.ts'
import { Content } from '../operations/served-operation.ts'
import { fileInfo } from './file-info.ts'
import { at, refusal } from './fs-error.ts'

/** How many files are examined concurrently. */
const batchSize = 100

/**
 * The entries of a folder as a JSON array, written while they are read: of a folder with a million files only the names
 * are in memory.
 */
export async function listFolder(path: string): Promise<Content> {
  return at({ field: 'path', path }, async () => {
    if (!(await stat(path)).isDirectory()) throw refusal('path', 'must be a directory')
    // As bytes, because a name may not be valid text.
    const names = await readdir(path, 'latin1' as BufferEncoding)
    await access(path, constants.X_OK)
    return new Content(jsonArray(filesOf(path, names.sort())), {
      headers: { 'content-type': 'application/json; charset=utf-8' },
    })
  })
}

async function* filesOf(folder: string, names: readonly string[]): AsyncGenerator<readonly FileInfo[]> {
  for (let start = 0; start < names.length; start += batchSize) {
    const batch = await Promise.all(names.slice(start, start + batchSize).map((name) => describe(folder, name)))
    yield batch.filter((file) => file !== undefined)
  }
}

/** Undefined for a file that was deleted after the folder was read. */
async function describe(folder: string, name: string): Promise<FileInfo | undefined> {
  const bytes = Buffer.from(name, 'latin1')
  const above = folder === '/' ? '/' : `${folder}/`
  const stats = await lstat(Buffer.concat([Buffer.from(above), bytes])).catch(() => undefined)
  const text = bytes.toString()
  return stats && fileInfo(text, `${above}${text}`, stats)
}

async function* jsonArray(batches: AsyncIterable<readonly object[]>): AsyncGenerator<Buffer> {
  let separator = '['
  for await (const batch of batches) {
    if (batch.length === 0) continue
    yield Buffer.from(`${separator}${batch.map((item) => JSON.stringify(item)).join(',')}`)
    separator = ','
  }
  yield Buffer.from(separator === '[' ? '[]' : ']')
}
