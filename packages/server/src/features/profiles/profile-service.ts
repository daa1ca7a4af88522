import type { Readable } from 'node:stream'
import { newId, type ProfileId, type ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { BrowserProfile, Profile as ProfileRecord } from '@berth/contract/profiles/profile.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { profileRecord } from './profile-record.ts'
import type { ProfileStates } from './profile-states.ts'
import type { Profile, ProfileFilter, ProfileStore } from './profile-store.ts'

export type { Profile } from './profile-store.ts'

interface ProfileServiceOptions {
  readonly store: ProfileStore
  readonly states: ProfileStates
  readonly clock: Clock
}

/** The rules of profiles. */
export class ProfileService {
  readonly #store: ProfileStore
  readonly #states: ProfileStates
  readonly #clock: Clock

  constructor({ store, states, clock }: ProfileServiceOptions) {
    this.#store = store
    this.#states = states
    this.#clock = clock
  }

  async create(projectId: ProjectId, name: string | null): Promise<Profile> {
    const now = this.#clock.now()
    return this.#store.insert({
      id: newId('profile', now),
      project_id: projectId,
      name,
      created_at: now,
      updated_at: now,
      last_used_at: null,
      state_blob: null,
      state_ended_at: null,
    })
  }

  /** The profile with this name, created if there is none. */
  async ensure(projectId: ProjectId, name: string): Promise<Profile> {
    // Each repetition means that a profile with this name was created or deleted in between, so the loop ends.
    for (;;) {
      const known = await this.#store.find(projectId, name)
      if (known?.name === name) return known
      try {
        return await this.create(projectId, name)
      } catch (error) {
        if (!(error instanceof BerthError) || error.code !== 'profile_name_taken') throw error
      }
    }
  }

  /** When the session ended whose state the profile has. Undefined if the profile does not exist. */
  async stateSavedAt(id: ProfileId): Promise<Date | null | undefined> {
    return (await this.#store.findById(id))?.state_ended_at
  }

  async list(filter: ProfileFilter, page: PageRequest): Promise<Page<Profile>> {
    return this.#store.list(filter, page)
  }

  async get(projectId: ProjectId, idOrName: string): Promise<Profile> {
    return (await this.#store.find(projectId, idOrName)) ?? throwNotFound(idOrName)
  }

  /** Finds the profile that a session refers to. Unlike in paths, ids and names are separate here. */
  async getReferred(projectId: ProjectId, { id, name }: BrowserProfile): Promise<Profile> {
    const wanted = id ?? name ?? ''
    const profile = await this.get(projectId, wanted)
    return (id === undefined ? profile.name : profile.id) === wanted ? profile : throwNotFound(wanted)
  }

  /** The form that callers see, for the records of sessions. Deleted profiles are missing. */
  async recordsOf(ids: readonly ProfileId[]): Promise<ReadonlyMap<ProfileId, ProfileRecord>> {
    const profiles = ids.length === 0 ? [] : await this.#store.listByIds(ids)
    return new Map(profiles.map((profile) => [profile.id, profileRecord(profile)]))
  }

  async rename(projectId: ProjectId, idOrName: string, name: string): Promise<Profile> {
    const { id } = await this.get(projectId, idOrName)
    return (await this.#store.rename(id, name, this.#clock.now())) ?? throwNotFound(idOrName)
  }

  /** Sessions that use it continue and save nothing. Of two concurrent deletes, one finds no profile. */
  async delete(projectId: ProjectId, idOrName: string): Promise<void> {
    const { id } = await this.get(projectId, idOrName)
    const deleted = (await this.#store.delete(id)) ?? throwNotFound(idOrName)
    await this.#states.remove(deleted.state_blob)
  }

  /** Returns the saved state, compressed, or undefined when none was saved. */
  async open(id: ProfileId): Promise<Readable | undefined> {
    return this.#states.open(() => this.#store.findById(id))
  }

  /** Records that a session starts to use it. */
  async noteUse(id: ProfileId): Promise<void> {
    await this.#store.noteUse(id, this.#clock.now())
  }

  /**
   * Replaces the saved state by that of a session that ended. Returns whether it did: a deleted profile, or one with
   * the state of a session that ended later, stays unchanged.
   */
  async save(id: ProfileId, endedAt: Date, state: Readable, signal: AbortSignal): Promise<boolean> {
    const profile = await this.#store.findById(id)
    if (!profile) {
      state.destroy()
      return false
    }
    const blob = await this.#states.write(profile, state, signal)
    // After a crash from here on, the sweep removes the unused blob.
    const superfluous = await this.#store.replaceState(id, { blob, endedAt }, this.#clock.now())
    await this.#states.remove(superfluous)
    return superfluous !== blob
  }

  /** Returns those of the blobs that profiles still use. */
  async listUsedBlobs(names: readonly string[]): Promise<readonly string[]> {
    return this.#store.listUsedBlobs(names)
  }
}

function throwNotFound(profile: string): never {
  throw new BerthError('profile_not_found', { profile })
}
