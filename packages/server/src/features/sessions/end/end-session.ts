import type { SessionId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { SingleFlight } from '@berth/runtime/async/single-flight.ts'
import type { DownloadService } from '../downloads/download-service.ts'
import type { SessionProfiles } from '../launch-inputs/session-profiles.ts'
import type { LifecycleEvents } from '../machines/lifecycle-events.ts'
import type { SessionMachines } from '../machines/session-machines.ts'
import type { Session } from '../records/session.ts'
import type { SessionEndReason } from '../records/session-state.ts'
import type { SessionStore } from '../records/session-store.ts'
import type { ReplayService } from '../replays/replay-service.ts'

interface SessionTerminatorOptions {
  readonly machines: SessionMachines
  readonly profiles: SessionProfiles
  readonly downloads: Pick<DownloadService, 'keep'>
  readonly replays: Pick<ReplayService, 'endOfSession'>
  readonly store: SessionStore
  readonly events: LifecycleEvents
  readonly clock: Clock
}

/** Ends sessions: at a caller's request, at their timeout, or when their machine is gone. All end the same way. */
export class SessionTerminator {
  readonly #options: SessionTerminatorOptions
  readonly #finishing = new SingleFlight<SessionId, void>()

  constructor(options: SessionTerminatorOptions) {
    this.#options = options
  }

  /** Ends the session and returns whether this call did. Resolves when nothing of its machine is left. */
  async end(id: SessionId, reason?: SessionEndReason): Promise<boolean> {
    const { store, clock } = this.#options
    return this.#finishBegun(await store.beginEnd(id, clock.now(), reason))
  }

  /** The same, unless another server has the session. */
  async endHere(id: SessionId): Promise<boolean> {
    const { store, clock } = this.#options
    return this.#finishBegun(await store.beginEndHere(id, clock.now()))
  }

  /** Ends the session unless there was activity since. */
  async endIdle(id: SessionId, idleSince: Date): Promise<boolean> {
    const { store, clock } = this.#options
    return this.#finishBegun(await store.beginTimeout(id, idleSince, clock.now()))
  }

  async #finishBegun(begun: Session | undefined): Promise<boolean> {
    if (!begun) return false
    this.#options.events.emit('sessionChanged', begun.project_id, begun.id)
    await this.finish(begun.id)
    return true
  }

  /** Completes the end of a session. Safe to repeat: interrupted steps are repeated. */
  finish(id: SessionId): Promise<void> {
    return this.#finishing.run(id, () => this.#finish(id))
  }

  async #finish(id: SessionId): Promise<void> {
    const { machines, profiles, replays, downloads, store, events } = this.#options
    const session = await store.findEnding(id)
    if (!session) return
    await machines.endClients(id)
    await Promise.all([replays.endOfSession(id), downloads.keep(session)])
    await profiles.save(session)
    await machines.stop(session)
    await store.finishEnd(id)
    events.emit('sessionEnded', id)
    events.emit('sessionChanged', session.project_id, id)
  }
}
