import type { ProfileId, ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { BrowserProfile } from '@berth/contract/profiles/profile.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { AgentRefusal } from '../../../agent-link/command-agent.ts'
import {
  type ProfileLoading,
  receiveProfile,
  sendProfile,
  takeProfileBack,
} from '../../../agent-link/transfers/profile-link.ts'
import { mayPass } from '../../../database/database.ts'
import type { ReachableMachine } from '../../../drivers/driver.ts'
import type { ProfileService } from '../../profiles/profile-service.ts'
import type { LifecycleEvents } from '../machines/lifecycle-events.ts'
import type { SessionMachines } from '../machines/session-machines.ts'
import type { Session } from '../records/session.ts'
import type { PlanChange, RestoreSession } from '../update/session-change.ts'

/** Shorter than the time for which official clients wait for the response to a delete. */
const saveLimitMilliseconds = 45_000
const loadLimitMilliseconds = 45_000

interface SessionProfilesOptions {
  readonly profiles: ProfileService
  readonly machines: SessionMachines
  readonly events: LifecycleEvents
  readonly logger: Logger
}

/** The facts about a referenced profile that a session needs. */
export interface ReferredProfile {
  readonly id: ProfileId
  readonly saveChanges: boolean
  /** Whether there is a state to load. */
  readonly hasState: boolean
}

/** Loads the state of profiles into sessions, and saves it when sessions end. */
export class SessionProfiles {
  readonly #options: SessionProfilesOptions

  constructor(options: SessionProfilesOptions) {
    this.#options = options
  }

  async refer(projectId: ProjectId, reference: BrowserProfile): Promise<ReferredProfile> {
    const { id, state_blob } = await this.#options.profiles.getReferred(projectId, reference)
    return { id, saveChanges: reference.save_changes, hasState: state_blob !== null }
  }

  /** Sends the state of the profile to an agent. Does nothing if there is none. */
  async load(profileId: ProfileId, machine: ReachableMachine, loading: ProfileLoading): Promise<void> {
    const state = await this.#options.profiles.open(profileId)
    // A saved state only disappears with its profile.
    if (!state) throw new BerthError('profile_not_found', { profile: profileId })
    try {
      await sendProfile(machine, state, loading)
    } catch (cause) {
      if (!(cause instanceof AgentRefusal) && !state.errored) throw cause
      this.#options.logger.warn({ profileId, err: state.errored ?? cause }, 'a profile could not be loaded')
      throw new BerthError('profile_not_loadable', { profile: profileId }, { cause })
    } finally {
      state.destroy()
    }
  }

  /** The part of an update that loads a profile. Restarts a running browser only if there is a state to load. */
  readonly plan: PlanChange = async (session, { profile, start_url }) => {
    if (!profile) return undefined
    if (session.profile_save_changes !== null) throw new BerthError('profile_already_loaded')
    const { id, saveChanges, hasState } = await this.refer(session.project_id, profile)
    return {
      columns: { profile_id: id, profile_save_changes: saveChanges },
      ...(hasState && {
        apply: () => this.#loadRunning(session.id, id, start_url ? 'blank' : 'restore'),
        revert: () => this.#takeBack(session.id),
      }),
      afterwards: () => this.noteUse(id),
    }
  }

  /** Removes a profile from a running browser after an update that loaded but did not record it. */
  readonly restore: RestoreSession = async ({ id, profile_save_changes }) => {
    if (profile_save_changes === null) await this.#takeBack(id)
  }

  async #loadRunning(id: SessionId, profileId: ProfileId, tabs: ProfileLoading['tabs']): Promise<void> {
    const signal = AbortSignal.timeout(loadLimitMilliseconds)
    await this.load(profileId, this.#options.machines.get(id), { tabs, signal }).catch(throwUnreachable)
  }

  async #takeBack(id: SessionId): Promise<void> {
    const signal = AbortSignal.timeout(loadLimitMilliseconds)
    await takeProfileBack(this.#options.machines.get(id), signal).catch(throwUnreachable)
  }

  noteUse(profileId: ProfileId): void {
    this.#options.profiles.noteUse(profileId).catch((error: Error) =>
      // The time of the last use is only informative.
      this.#options.logger.warn({ profileId, reason: error.message }, 'could not record the use of a profile'),
    )
  }

  /**
   * Saves the state of an ending session to its profile, if that was requested. A failure does not stop the end of the
   * session, except an unavailable database, after which the whole end is repeated.
   */
  async save({ id, profile_id, profile_save_changes, deleted_at }: Session): Promise<void> {
    const { profiles, machines, events, logger } = this.#options
    if (!profile_id || !profile_save_changes || !deleted_at) return
    const facts = { sessionId: id, profileId: profile_id }
    try {
      const machine = machines.find(id)
      if (!machine) throw new Error('its machine is gone')
      const signal = AbortSignal.timeout(saveLimitMilliseconds)
      const state = await receiveProfile(machine, signal)
      const isSaved = await profiles.save(profile_id, deleted_at, state, signal)
      if (isSaved) events.emit('profileSaved', profile_id)
      else logger.info(facts, 'a state was discarded: its profile was deleted, or saved by a later session')
    } catch (error) {
      if (mayPass(error)) throw error
      logger.error({ ...facts, err: error }, 'a profile was not saved; it keeps its previous state')
    }
  }
}

function throwUnreachable(cause: unknown): never {
  throw cause instanceof BerthError ? cause : new BerthError('session_unreachable', undefined, { cause })
}
