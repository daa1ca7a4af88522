import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { BlobStore } from '../blobs/blob-store.ts'

/** Between the end of a write and the row that mentions it lies one statement. */
const minAgeMilliseconds = 60 * 60 * 1000
const namesPerQuestion = 1_000

/** Whose rows mention blobs. */
interface BlobOwner {
  listUsedBlobs(names: readonly string[]): Promise<readonly string[]>
}

interface BlobSweepOptions {
  readonly blobs: BlobStore
  readonly owners: readonly BlobOwner[]
  readonly clock: Clock
  readonly logger: Logger
}

/** Removes the blobs that no row mentions: what a crash has left between a blob and its row. */
export class BlobSweep {
  readonly #options: BlobSweepOptions
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> = Promise.resolve()

  constructor(options: BlobSweepOptions) {
    this.#options = options
  }

  /** Sweeps at once, for the crash that may have been before this start, and then again and again. */
  start(intervalMilliseconds: number): void {
    const sweep = () => {
      this.#running = this.sweep().catch((error: Error) =>
        this.#options.logger.warn({ reason: error.message }, 'could not sweep the blobs; trying again'),
      )
    }
    sweep()
    this.#timer = setInterval(sweep, intervalMilliseconds)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#running
  }

  /** One round. */
  async sweep(): Promise<void> {
    const { blobs, owners, clock, logger } = this.#options
    const old = await blobs.list(new Date(clock.now().getTime() - minAgeMilliseconds))
    for (let start = 0; start < old.length; start += namesPerQuestion) {
      const names = old.slice(start, start + namesPerQuestion)
      const used = new Set((await Promise.all(owners.map((owner) => owner.listUsedBlobs(names)))).flat())
      const orphans = names.filter((name) => !used.has(name))
      for (const name of orphans) await blobs.remove(name)
      if (orphans.length > 0) logger.info({ blobs: orphans.length }, 'removed blobs that nothing mentions')
    }
  }
}
