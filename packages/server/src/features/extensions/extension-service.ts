import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { newId, type ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { ExtensionReference } from '@berth/contract/extensions/extension.ts'
import { Archive } from '@berth/runtime/archive/archive.ts'
import { BadArchive } from '@berth/runtime/archive/archive-entry.ts'
import {
  type ExtensionFacts,
  extensionArchiveLimits,
  inspectExtension,
} from '@berth/runtime/archive/extension-archive.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { BlobNotFound, type Blobs } from '../../blobs/blobs.ts'
import type { TemporaryFolders } from '../../blobs/temporary-folders.ts'
import type { ProjectSecrets } from '../../secrets/project-secrets.ts'
import type { ExtensionFilter, ExtensionStore, StoredExtension } from './extension-store.ts'

export type { StoredExtension } from './extension-store.ts'

interface ExtensionServiceOptions {
  readonly store: ExtensionStore
  readonly blobs: Blobs
  readonly secrets: ProjectSecrets
  readonly temporaryFolders: TemporaryFolders
  readonly clock: Clock
}

/** A complete uploaded archive in a file. */
export interface ExtensionUpload {
  readonly name: string | undefined
  readonly path: string
}

/** The extensions that a project stores for its sessions. */
export class ExtensionService {
  readonly #options: ExtensionServiceOptions

  constructor(options: ExtensionServiceOptions) {
    this.#options = options
  }

  async upload(projectId: ProjectId, { name, path }: ExtensionUpload): Promise<StoredExtension> {
    const { store, blobs, secrets, clock } = this.#options
    const { policy } = await checkExtension(path, 'file')
    const now = clock.now()
    const id = newId('extension', now)
    const blob = `extension-${randomUUID()}`
    const { size, checksum } = await describe(path)
    const sealing = await secrets.sealing(projectId, contextOf(id))
    await pipeline(createReadStream(path), sealing, (sealed: AsyncIterable<Uint8Array>) => blobs.write(blob, sealed))
    try {
      return await store.insert({
        id,
        project_id: projectId,
        name: name ?? null,
        size_bytes: size,
        checksum,
        blob,
        policy_id: policy?.id ?? null,
        created_at: now,
        last_used_at: null,
      })
    } catch (error) {
      await blobs.remove(blob)
      throw error
    }
  }

  async list(filter: ExtensionFilter, page: PageRequest): Promise<Page<StoredExtension>> {
    return this.#options.store.list(filter, page)
  }

  async get(projectId: ProjectId, idOrName: string): Promise<StoredExtension> {
    const extension = await this.#options.store.find(projectId, idOrName)
    if (!extension) throw new BerthError('extension_not_found', { extension: idOrName })
    return extension
  }

  /** Returns the uploaded archive, byte for byte. It is verified as a whole before the first byte is sent. */
  async download(projectId: ProjectId, idOrName: string): Promise<{ content: Readable; sizeBytes: number }> {
    const extension = await this.get(projectId, idOrName)
    await using folder = await this.#options.temporaryFolders.make()
    // An open file stays readable after its folder is removed.
    const file = await open(await this.#unseal(extension, folder.path))
    return { content: file.createReadStream(), sizeBytes: extension.size_bytes }
  }

  async delete(projectId: ProjectId, idOrName: string): Promise<void> {
    const { id, blob } = await this.get(projectId, idOrName)
    // Of two concurrent deletes, one finds it.
    if (!(await this.#options.store.delete(projectId, id))) {
      throw new BerthError('extension_not_found', { extension: idOrName })
    }
    await this.#options.blobs.remove(blob)
  }

  /** Finds the extensions that a session starts with, each once. */
  async use(projectId: ProjectId, references: readonly ExtensionReference[]): Promise<readonly StoredExtension[]> {
    const used: StoredExtension[] = []
    for (const { id, name } of references) {
      const key = id === undefined ? { name: name ?? '' } : { id }
      const extension = await this.#options.store.use(projectId, key, this.#options.clock.now())
      if (!extension) throw new BerthError('extension_not_found', { extension: id ?? name ?? '' })
      if (used.some((other) => other.id === extension.id)) {
        throw new BerthError('invalid_input', { reason: `extensions: must contain ${id ?? name} once.` })
      }
      used.push(extension)
    }
    return used
  }

  /** Returns the uploaded archive. It is whole only if the stream ends without an error. */
  async open(extension: StoredExtension): Promise<Readable> {
    const { id, project_id } = extension
    const unsealing = await this.#options.secrets.unsealing(project_id, contextOf(id))
    const sealed = await this.#readBlob(extension)
    pipeline(sealed, unsealing).catch(() => {}) // Its reader sees it.
    return unsealing
  }

  /** Writes the archive to a file in the folder and returns its path. */
  async #unseal(extension: StoredExtension, folder: string): Promise<string> {
    const path = join(folder, `${extension.id}.zip`)
    await pipeline(await this.open(extension), createWriteStream(path))
    return path
  }

  #readBlob({ id, blob }: StoredExtension): Promise<Readable> {
    return this.#options.blobs.read(blob).catch((cause: unknown) => {
      // Deleted since it was found.
      throw cause instanceof BlobNotFound ? new BerthError('extension_not_found', { extension: id }, { cause }) : cause
    })
  }

  /** Returns those of the blobs that extensions still use. */
  async listUsedBlobs(names: readonly string[]): Promise<readonly string[]> {
    return this.#options.store.listUsedBlobs(names)
  }
}

/** Reads the whole archive, so that one that passes can be unpacked anywhere. */
export async function checkExtension(path: string, field: string): Promise<ExtensionFacts> {
  try {
    await using archive = await Archive.open(path, extensionArchiveLimits)
    const facts = await inspectExtension(archive)
    await archive.verify()
    return facts
  } catch (error) {
    if (!(error instanceof BadArchive)) throw error
    throw new BerthError('archive_refused', { field, reason: error.message }, { cause: error })
  }
}

async function describe(path: string): Promise<{ size: number; checksum: string }> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return { size: (await stat(path)).size, checksum: hash.digest('hex') }
}

function contextOf(id: string): string {
  return `extension ${id}`
}
