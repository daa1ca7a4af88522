import { randomUUID } from 'node:crypto'
import { pipeline as pipelineOf, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { limitBytes } from '@berth/runtime/stream/limit-bytes.ts'
import { BlobNotFound, type Blobs } from '../../blobs/blobs.ts'
import type { ProjectSecrets } from '../../secrets/project-secrets.ts'
import type { Profile } from './profile-store.ts'

/** The compressed size. The content comes from a session and is untrusted. */
export const maxStateBytes = 512 * 1024 ** 2

/** How often a state may be replaced while it is opened. */
const maxReplacements = 10

interface ProfileStatesOptions {
  readonly blobs: Blobs
  readonly secrets: ProjectSecrets
}

/** The saved states of profiles: encrypted archives, each in a blob that is written once. */
export class ProfileStates {
  readonly #blobs: Blobs
  readonly #secrets: ProjectSecrets

  constructor({ blobs, secrets }: ProfileStatesOptions) {
    this.#blobs = blobs
    this.#secrets = secrets
  }

  /** Stores the complete state and returns the name of its blob, or rejects and stores nothing. */
  async write({ id, project_id }: Profile, state: Readable, signal: AbortSignal): Promise<string> {
    const blob = `profile-${randomUUID()}`
    const sealing = await this.#secrets.sealing(project_id, contextOf(id))
    await pipeline(
      state,
      limitBytes(maxStateBytes, `the state of the browser takes more than ${maxStateBytes} bytes`),
      sealing,
      (sealed: AsyncIterable<Uint8Array>) => this.#blobs.write(blob, sealed),
      { signal },
    )
    return blob
  }

  /**
   * Opens the state of the profile, which stays complete even when it is replaced or deleted meanwhile. Undefined when
   * none was saved. The stream fails at its end when the blob was modified.
   */
  async open(find: () => Promise<Profile | undefined>): Promise<Readable | undefined> {
    for (let attempt = 0; ; attempt++) {
      const profile = await find()
      if (!profile?.state_blob) return undefined
      try {
        const sealed = await this.#blobs.read(profile.state_blob)
        const unsealing = await this.#secrets.unsealing(profile.project_id, contextOf(profile.id))
        pipelineOf(sealed, unsealing, () => {}) // The reader sees the failure.
        return unsealing
      } catch (error) {
        // The state was replaced after the row was read. The next attempt finds the new blob.
        if (!(error instanceof BlobNotFound) || attempt === maxReplacements) throw error
      }
    }
  }

  async remove(blob: string | null): Promise<void> {
    if (blob !== null) await this.#blobs.remove(blob)
  }
}

function contextOf(profileId: string): string {
  return `profile ${profileId}`
}
