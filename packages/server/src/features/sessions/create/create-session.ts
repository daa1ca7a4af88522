import { configureAgent } from '@berth/contract/agent/agent-endpoints.ts'
import { newId, type ProjectId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { commandAgent } from '../../../agent-link/command-agent.ts'
import type { ReachableMachine } from '../../../drivers/driver.ts'
import type { LimitService } from '../../limits/limit-service.ts'
import type { SessionTelemetry } from '../../telemetry/session-telemetry-service.ts'
import type { SessionTerminator } from '../end/end-session.ts'
import type { SessionExtensions } from '../launch-inputs/session-extensions.ts'
import type { SessionProfiles } from '../launch-inputs/session-profiles.ts'
import type { LifecycleEvents } from '../machines/lifecycle-events.ts'
import type { SessionEgress } from '../machines/session-egress.ts'
import type { SessionMachines } from '../machines/session-machines.ts'
import type { Session } from '../records/session.ts'
import type { SessionStore } from '../records/session-store.ts'
import { attributeError, type LaunchInputs, machineSpec } from './machine-spec.ts'
import type { SessionRequest, SessionRequests } from './session-request.ts'

/** Of an agent that is still loading its programs on a busy host. */
const configurationLimitMilliseconds = 45_000

interface SessionCreatorOptions {
  readonly store: SessionStore
  readonly requests: SessionRequests
  readonly machines: SessionMachines
  readonly profiles: SessionProfiles
  readonly sessionExtensions: SessionExtensions
  readonly terminator: SessionTerminator
  readonly limits: LimitService
  readonly egress: SessionEgress
  readonly telemetry: SessionTelemetry
  readonly events: LifecycleEvents
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Creates sessions, in three steps. *Allocate*: one transaction takes a place and writes the row, which names the
 * session's machine. *Provision*: that machine is started and given what the session starts with. *Activate*: one
 * statement lets callers in. A crash between any two leaves a row that says `starting`, and at most the machine it names.
 */
export class SessionCreator {
  readonly #options: SessionCreatorOptions

  constructor(options: SessionCreatorOptions) {
    this.#options = options
  }

  /**
   * Makes a session and resolves when its browser can be used. A failed start leaves nothing; a session that is
   * deleted while it starts ends, and its creator is told.
   */
  async create(projectId: ProjectId, request: SessionRequest, signal: AbortSignal): Promise<Session> {
    const { machines, terminator, requests, clock } = this.#options
    const selected = await requests.select(projectId, request)
    const now = clock.now()
    const [id, machineId] = [newId('session', now), newId('machine', now)]
    // What the database keeps of a create that it broke off is found by the reaper, from the end of this call on.
    using _expected = machines.expect(id)
    const session = await this.#allocate(
      projectId,
      requests.rowOf({ id, machineId, projectId, request, selected, now }),
    )

    let active: Session | undefined
    try {
      const { idleSince } = await this.#provision(session, request, selected.inputs, signal)
      active = await this.#activate(session, idleSince)
    } catch (error) {
      await this.#abandon(session)
      if (!(await this.#wasDeleted(session))) throw attributeError(error, request)
    }
    if (active && !machines.hasGone(id)) return active
    if (!active) {
      await machines.stop(session)
      throw new BerthError('session_ended_while_starting')
    }
    // Its machine went before the row said that it is usable, when its end was still this call's own affair.
    await terminator.end(id)
    throw new BerthError('session_start_failed', { reason: 'its machine ended.' })
  }

  async #allocate(projectId: ProjectId, row: Parameters<SessionStore['insert']>[0]): Promise<Session> {
    const { limits, store, logger } = this.#options
    const session = await limits.takePlace(projectId, (database) => store.insert(row, database))
    // An operator finds the machine of a session by this: its folders and control groups have no other name.
    logger.info({ sessionId: session.id, machineId: session.machine_id }, 'a session is allocated a machine')
    return session
  }

  async #provision(
    session: Session,
    request: SessionRequest,
    inputs: LaunchInputs,
    signal: AbortSignal,
  ): Promise<{ readonly idleSince: Date | null }> {
    const { machines, profiles, egress } = this.#options
    const certificates = await egress.certificates(session)
    const spec = machineSpec(session, request, { ...inputs, certificates })
    const deliver = (machine: ReachableMachine, either: AbortSignal) => this.#deliver(session, inputs, machine, either)
    const provisioned = await machines.provision({ session, spec, deliver, signal })
    if (inputs.profile) profiles.noteUse(inputs.profile.id)
    return provisioned
  }

  /** Gives the agent what the session starts with. A start page takes the place of the tabs of a profile. */
  async #deliver(
    session: Session,
    { extensions, profile }: LaunchInputs,
    machine: ReachableMachine,
    signal: AbortSignal,
  ): Promise<void> {
    const { profiles, sessionExtensions } = this.#options
    const tabs = session.start_url === null ? 'restore' : 'blank'
    // At once: extensions are answered for when the browser runs, and it waits for the profile.
    await Promise.all([
      profile?.hasState && profiles.load(profile.id, machine, { tabs, signal }),
      extensions.length > 0 && sessionExtensions.give(machine, extensions, signal),
      this.#configure(session, machine),
    ])
  }

  /** Telemetry first, so that it sees the start page. */
  async #configure({ id, start_url, telemetry }: Session, machine: ReachableMachine): Promise<void> {
    if (telemetry) await this.#options.telemetry.configure(id, telemetry)
    if (start_url !== null) await openStartPage(machine, start_url)
  }

  /** Nothing when the session was deleted before. */
  async #activate(session: Session, idleSince: Date | null): Promise<Session | undefined> {
    const { egress, store } = this.#options
    await egress.takeUpRoutes(session)
    return store.activate(session.id, idleSince)
  }

  /** Its browser may be ready, and only the database does not hear of it. */
  async #abandon(session: Session): Promise<void> {
    const { machines, store, events } = this.#options
    await machines.stop(session)
    await store.removeStarting(session.id)
    events.emit('sessionEnded', session.id)
  }

  async #wasDeleted({ id, project_id }: Session): Promise<boolean> {
    const found = await this.#options.store.find(project_id, id, true)
    return found !== undefined && found.state !== 'active'
  }
}

/** Answered before there is a page: the agent opens it then, and what comes of it shows in the page. */
async function openStartPage(machine: ReachableMachine, startUrl: string): Promise<void> {
  const options = { limitMilliseconds: configurationLimitMilliseconds }
  await commandAgent(machine, configureAgent, { start_url: startUrl }, options).catch((cause: unknown) => {
    throw new Error('its agent did not take the start page', { cause })
  })
}
