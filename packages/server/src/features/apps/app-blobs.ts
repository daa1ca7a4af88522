import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ProjectId } from '@berth/contract/common/ids.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { ProjectSecrets } from '../../secrets/project-secrets.ts'

interface AppBlobsOptions {
  readonly blobs: Blobs
  readonly secrets: ProjectSecrets
}

/** The sources of apps and their installed dependencies, encrypted with the key of their organization. */
export class AppBlobs {
  readonly #options: AppBlobsOptions

  constructor(options: AppBlobsOptions) {
    this.#options = options
  }

  async write(kind: 'source' | 'dependencies', projectId: ProjectId, content: Readable): Promise<string> {
    const { blobs, secrets } = this.#options
    const name = `app-${kind}-${randomUUID()}`
    const sealing = await secrets.sealing(projectId, contextOf(name))
    await pipeline(content, sealing, (sealed: AsyncIterable<Uint8Array>) => blobs.write(name, sealed))
    return name
  }

  /** A reader must discard the data when the stream fails. */
  async read(projectId: ProjectId, name: string): Promise<Readable> {
    const { blobs, secrets } = this.#options
    const unsealing = await secrets.unsealing(projectId, contextOf(name))
    const sealed = await blobs.read(name)
    sealed.once('error', (error) => unsealing.destroy(error))
    unsealing.once('close', () => sealed.destroy())
    return sealed.pipe(unsealing)
  }

  remove(name: string): Promise<void> {
    return this.#options.blobs.remove(name)
  }
}

/** Stores the archive from the file, unchanged. */
export async function keepSource(
  blobs: AppBlobs,
  projectId: ProjectId,
  path: string,
): Promise<{ readonly checksum: string; readonly blob: string }> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return { checksum: hash.digest('hex'), blob: await blobs.write('source', projectId, createReadStream(path)) }
}

function contextOf(name: string): string {
  return `app blob ${name}`
}
