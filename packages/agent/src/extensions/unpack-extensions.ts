import { createWriteStream } from 'node:fs'
import { lstat, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
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

/** Unpacks each extension of the request into its own folder, `extensions/<name>` in the home; all of them, or none. */
export async function unpackExtensions(
  request: IncomingMessage,
  homeFolder: string,
): Promise<readonly UnpackedExtension[]> {
  const folder = join(homeFolder, 'extensions')
  await mkdir(folder, { recursive: true })
  // Beside their final place, so that one rename moves them, and with a name that no extension can have.
  const temporaryFolder = await mkdtemp(join(folder, '~incoming-'))
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
    await rm(temporaryFolder, { recursive: true, force: true })
  }
}

async function unpackOne(
  { label, text, content }: Pair,
  folder: string,
  temporaryFolder: string,
): Promise<UnpackedExtension> {
  const name = validate(ExtensionName, text, `${label}.name`)
  const place = join(folder, name)
  if (await exists(place))
    throw new BerthError('extension_not_loadable', { extension: name, reason: 'its name is taken' })
  const zip = join(temporaryFolder, 'archive.zip')
  const made = join(temporaryFolder, 'folder')
  await pipeline(content, createWriteStream(zip))
  try {
    await using archive = await Archive.open(zip, extensionArchiveLimits)
    const { root, hasWorker, policy } = await inspectExtension(archive)
    await unpackArchive(archive, { folder: made, root })
    await rename(made, place)
    return { name, folder: place, hasWorker, policy }
  } catch (error) {
    await rm(made, { recursive: true, force: true })
    if (!(error instanceof BadArchive)) throw error
    throw new BerthError('archive_refused', { field: `${label}.zip_file`, reason: error.message }, { cause: error })
  }
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}
