import { randomUUID } from 'node:crypto'
import { pipeline as pipelineOf, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type { ProjectId } from '@berth/contract/common/ids.ts'
import type { ProjectSecrets } from '../secrets/project-secrets.ts'
import type { Blobs } from './blobs.ts'

interface SealedPartsOptions {
  readonly blobs: Blobs
  readonly secrets: ProjectSecrets
  /** What the parts belong to. Their names start with it. */
  readonly kind: string
}

interface StoredPart {
  readonly number: number
  readonly blob: string
}

interface Whole {
  readonly projectId: ProjectId
  readonly id: string
}

/**
 * Stores content in parts. Each is a separate, separately encrypted blob, so a reader of a range decrypts only the
 * parts it needs.
 */
export class SealedParts {
  readonly #options: SealedPartsOptions

  constructor(options: SealedPartsOptions) {
    this.#options = options
  }

  /** Returns the name of the blob when it is durable. */
  async write({ projectId, id }: Whole, number: number, bytes: Buffer): Promise<string> {
    const { blobs, secrets, kind } = this.#options
    const blob = `${kind}-${randomUUID()}`
    const sealing = await secrets.sealing(projectId, this.#contextOf(id, number))
    await pipeline(Readable.from([bytes]), sealing, (sealed: AsyncIterable<Uint8Array>) => blobs.write(blob, sealed))
    return blob
  }

  /** Rejects when the part was modified. */
  async read({ projectId, id }: Whole, { number, blob }: StoredPart): Promise<Buffer> {
    const { blobs, secrets } = this.#options
    const unsealing = await secrets.unsealing(projectId, this.#contextOf(id, number))
    pipelineOf(await blobs.read(blob), unsealing, () => {}) // The reader sees the failure.
    return buffer(unsealing)
  }

  async remove({ blob }: Pick<StoredPart, 'blob'>): Promise<void> {
    await this.#options.blobs.remove(blob)
  }

  #contextOf(id: string, number: number): string {
    return `${this.#options.kind} ${id} part ${number}`
  }
}

/** A range of bytes, including both ends. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** Yields the range of the content that the parts form. Reads only the parts that overlap with it. */
export async function* readRange<Part extends { readonly size_bytes: number }>(
  parts: readonly Part[],
  { start, end }: ByteRange,
  readPart: (part: Part) => Promise<Buffer>,
): AsyncGenerator<Buffer> {
  let at = 0
  for (const part of parts) {
    const partStart = at
    at += part.size_bytes
    if (at <= start) continue
    if (partStart > end) return
    const bytes = await readPart(part)
    if (bytes.length !== part.size_bytes) throw new Error('the size of a part differs from its row')
    yield bytes.subarray(Math.max(0, start - partStart), end + 1 - partStart)
  }
}
