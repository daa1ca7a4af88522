import { createWriteStream, lstatSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { BerthError } from '@berth/contract/errors.ts'
import { ExtensionName } from '@berth/contract/extensions/extension.ts'
import { Archive } from '@berth/runtime/archive/archive.ts'
import { BadArchive } from '@berth/runtime/archive/archive-entry.ts'
import { extensionArchiveLimits, inspectExtension } from '@berth/runtime/archive/extension-archive.ts'
import { unpackArchive } from '@berth/runtime/archive/unpack-archive.ts'
import { readExtensionPairs } from '@berth/runtime/http/extension-pairs.ts'
import type { Pair } from '@berth/runtime/http/multipart-pairs.ts'
import { validate } from '@berth/runtime/http/validate.ts'
import { removeFolders, type UnpackedExtension } from './extension-set.ts'

/** Archives up to this size are not written to a file, which would take several calls of the file system. */
const maxBytesInMemory = 1024 * 1024

/**
 * Unpacks each extension of the request into its own folder, `extensions/<name>` in the home; all of them, or none. Short
 * calls of the file system are synchronous: passing each to another thread would take longer, and a create waits.
 */
export async function unpackExtensions(
  request: IncomingMessage,
  homeFolder: string,
): Promise<readonly UnpackedExtension[]> {
  const folder = join(homeFolder, 'extensions')
  mkdirSync(folder, { recursive: true })
  // Beside their final place, so that one rename moves them, and with a name that no extension can have.
  const temporaryFolder = mkdtempSync(join(folder, '~incoming-'))
  const unpacked: UnpackedExtension[] = []
  try {
    for await (const pair of readExtensionPairs(request, temporaryFolder)) {
      unpacked.push(await unpackOne(pair, folder, temporaryFolder))
    }
    return unpacked
  } catch (error) {
    await removeFolders(unpacked)
    throw error
  } finally {
    rmSync(temporaryFolder, { recursive: true, force: true })
  }
}

async function unpackOne(
  { label, text, content }: Pair,
  folder: string,
  temporaryFolder: string,
): Promise<UnpackedExtension> {
  const name = validate(ExtensionName, text, `${label}.name`)
  const place = join(folder, name)
  if (lstatSync(place, { throwIfNoEntry: false }))
    throw new BerthError('extension_not_loadable', { extension: name, reason: 'its name is taken' })
  const made = join(temporaryFolder, 'folder')
  const zip = await receive(content, join(temporaryFolder, 'archive.zip'))
  try {
    await using archive = await Archive.open(zip, extensionArchiveLimits)
    const { root, hasWorker, policy } = await inspectExtension(archive)
    await unpackArchive(archive, { folder: made, root })
    renameSync(made, place)
    return { name, folder: place, hasWorker, policy }
  } catch (error) {
    if (!(error instanceof BadArchive)) throw error
    throw new BerthError('archive_refused', { field: `${label}.zip_file`, reason: error.message }, { cause: error })
  }
}

/** Resolves with the content, or with the path if it is large. */
async function receive(content: Readable, path: string): Promise<Buffer | string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of content.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk)
    size += chunk.length
    if (size > maxBytesInMemory) break
  }
  if (size <= maxBytesInMemory) return Buffer.concat(chunks)
  const all = async function* () {
    yield* chunks
    yield* content
  }
  await pipeline(all, createWriteStream(path))
  return path
}
