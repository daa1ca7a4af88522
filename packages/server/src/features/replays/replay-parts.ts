import { randomUUID } from 'node:crypto'
import { pipeline as pipelineOf, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type { BlobStore } from '../../blobs/blob-store.ts'
import type { ProjectSecrets } from '../../secrets/project-secrets.ts'
import type { Replay, ReplayPart, ReplayStore } from './replay-store.ts'

interface ReplayPartsOptions {
  readonly blobs: BlobStore
  readonly secrets: ProjectSecrets
  readonly store: ReplayStore
}

type Owner = Pick<Replay, 'id' | 'project_id'>

/** The parts of recordings: each is sealed alone, in a blob of its own, so that a reader decrypts no other. */
export class ReplayParts {
  readonly #options: ReplayPartsOptions

  constructor(options: ReplayPartsOptions) {
    this.#options = options
  }

  /** Stores a part. When it resolves, the part outlives any crash. */
  async write(
    { id, project_id }: Owner,
    number: number,
    part: { readonly bytes: Buffer; readonly durationMilliseconds: number },
  ): Promise<void> {
    const { blobs, secrets, store } = this.#options
    const blob = `replay-${randomUUID()}`
    const sealing = await secrets.sealing(project_id, contextOf(id, number))
    await pipeline(Readable.from([part.bytes]), sealing, (sealed: AsyncIterable<Uint8Array>) =>
      blobs.write(blob, sealed),
    )
    await store.insertPart({
      replay_id: id,
      number,
      blob,
      size_bytes: part.bytes.length,
      duration_ms: part.durationMilliseconds,
    })
  }

  /** Rejects when the part was modified. */
  async read({ id, project_id }: Owner, { number, blob }: ReplayPart): Promise<Buffer> {
    const { blobs, secrets } = this.#options
    const unsealing = await secrets.unsealing(project_id, contextOf(id, number))
    pipelineOf(await blobs.read(blob), unsealing, () => {}) // The reader sees the failure.
    return buffer(unsealing)
  }

  async remove({ blob }: ReplayPart): Promise<void> {
    await this.#options.blobs.remove(blob)
  }
}

function contextOf(id: string, number: number): string {
  return `replay ${id} part ${number}`
}
