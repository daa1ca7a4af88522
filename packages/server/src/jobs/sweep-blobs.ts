import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Blobs } from '../blobs/blobs.ts'

/** Only one statement lies between the end of a write and the row that refers to it. */
const minAgeMilliseconds = 60 * 60 * 1000
const namesPerQuestion = 1_000

/** A feature whose rows refer to blobs. */
interface BlobOwner {
  listUsedBlobs(names: readonly string[]): Promise<readonly string[]>
}

interface BlobSweepOptions {
  readonly blobs: Blobs
  readonly owners: readonly BlobOwner[]
  readonly clock: Clock
  readonly logger: Logger
}

/** Removes blobs without a row, which a crash leaves between writing the blob and the row. */
export class BlobSweep {
  readonly #options: BlobSweepOptions

  constructor(options: BlobSweepOptions) {
    this.#options = options
  }

  async sweep(signal?: AbortSignal): Promise<void> {
    const { blobs, owners, clock, logger } = this.#options
    const before = new Date(clock.now().getTime() - minAgeMilliseconds)
    await blobs.removeUnfinished(before)
    for await (const names of chunks(blobs.list({ before }), namesPerQuestion)) {
      signal?.throwIfAborted()
      const used = new Set((await Promise.all(owners.map((owner) => owner.listUsedBlobs(names)))).flat())
      const orphans = names.filter((name) => !used.has(name))
      for (const name of orphans) await blobs.remove(name)
      if (orphans.length > 0) logger.info({ blobs: orphans.length }, 'removed blobs without a row')
    }
  }
}

async function* chunks(names: AsyncIterable<string>, size: number): AsyncGenerator<readonly string[]> {
  let chunk: string[] = []
  for await (const name of names) {
    chunk.push(name)
    if (chunk.length < size) continue
    yield chunk
    chunk = []
  }
  if (chunk.length > 0) yield chunk
}
