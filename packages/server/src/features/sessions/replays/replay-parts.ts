import type { SealedParts } from '../../../blobs/sealed-parts.ts'
import type { Fragment } from './mp4-fragments.ts'
import type { Replay, ReplayPart, ReplayStore } from './replay-store.ts'

interface ReplayPartsOptions {
  readonly sealed: SealedParts
  readonly store: ReplayStore
}

type Owner = Pick<Replay, 'id' | 'project_id'>

/** Stores the parts of recordings, each with its row. */
export class ReplayParts {
  readonly #options: ReplayPartsOptions

  constructor(options: ReplayPartsOptions) {
    this.#options = options
  }

  /** Stores a part. It is durable when this resolves. */
  async write({ id, project_id }: Owner, number: number, { bytes, durationMilliseconds }: Fragment): Promise<void> {
    const { sealed, store } = this.#options
    const blob = await sealed.write({ projectId: project_id, id }, number, bytes)
    await store.insertPart({
      replay_id: id,
      number,
      blob,
      size_bytes: bytes.length,
      duration_ms: durationMilliseconds,
    })
  }

  read({ id, project_id }: Owner, part: ReplayPart): Promise<Buffer> {
    return this.#options.sealed.read({ projectId: project_id, id }, part)
  }

  remove(part: ReplayPart): Promise<void> {
    return this.#options.sealed.remove(part)
  }
}
