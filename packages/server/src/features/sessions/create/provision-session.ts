import { type BrowserConfiguration, configureAgent } from '@berth/contract/agent/agent-endpoints.ts'
import { newId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { commandAgent } from '../../../agent-link/command-agent.ts'
import type { Driver, ReachableMachine } from '../../../drivers/driver.ts'
import type { SessionTelemetry } from '../../telemetry/session-telemetry-service.ts'
import type { CaptchaSolving } from '../captchas/captcha-solving.ts'
import type { SessionExtensions } from '../launch-inputs/session-extensions.ts'
import type { SessionProfiles } from '../launch-inputs/session-profiles.ts'
import type { SessionMachines } from '../machines/session-machines.ts'
import { windowOf } from '../machines/session-viewport.ts'
import type { Session } from '../records/session.ts'
import type { SessionStore } from '../records/session-store.ts'
import type { ChosenMachine, Reserve } from '../reserve/reserve.ts'
import { isReserveWindow, isUnlaunched } from '../reserve/reserve-kind.ts'
import { afterFirstMoments } from './claim-ready-machine.ts'
import { type LaunchInputs, machineSpec } from './machine-spec.ts'
import type { SessionRequest } from './session-request.ts'

/** Includes the time in which an agent on a busy host loads its programs. */
const configurationLimitMilliseconds = 45_000

interface SessionProvisionerOptions {
  readonly driver: Driver
  readonly store: SessionStore
  readonly machines: SessionMachines
  readonly profiles: SessionProfiles
  readonly sessionExtensions: SessionExtensions
  readonly telemetry: SessionTelemetry
  readonly reserve: Reserve
  readonly captchas: Pick<CaptchaSolving, 'solvesFor'>
  readonly clock: Clock
  readonly logger: Logger
}

interface Provisioning {
  /** Its row names the machine: a new one, or one of the reserve. */
  readonly session: Session
  readonly request: SessionRequest
  readonly inputs: LaunchInputs
  /** Its machine, if it is one of the reserve. */
  readonly claimed: ChosenMachine | undefined
  /** Whether that machine turned out to be unusable. */
  readonly isOfNoUse: boolean
  readonly signal: AbortSignal
}

interface Provisioned {
  /** Another machine may have replaced the claimed one. */
  readonly session: Session
  readonly idleSince: Date | null
}

/** Provides new sessions with machines and sends these the initial settings of the sessions. */
export class SessionProvisioner {
  readonly #options: SessionProvisionerOptions

  constructor(options: SessionProvisionerOptions) {
    this.#options = options
  }

  /** Resolves when the browser can be used. After a rejection, nothing of any machine is left. */
  async provision(provisioning: Provisioning): Promise<Provisioned> {
    const { profile } = provisioning.inputs
    const { session, claimed, isOfNoUse } = provisioning
    if (isOfNoUse) this.#options.reserve.noteMiss('failed')
    const provisioned =
      (claimed && !isOfNoUse && (await this.#provisionClaimed(provisioning, claimed))) ||
      (await this.#provisionCold(
        claimed ? { ...provisioning, session: await this.#newMachine(session) } : provisioning,
      ))
    if (profile) this.#options.profiles.noteUse(profile.id)
    return provisioned
  }

  /** Undefined if the machine fails. Nothing of it is left then. */
  async #provisionClaimed(
    provisioning: Provisioning,
    { machine, kind, awake }: ChosenMachine,
  ): Promise<Provisioned | undefined> {
    const { machines, reserve, logger } = this.#options
    const { session, inputs, signal } = provisioning
    try {
      const deliver = (reachable: ReachableMachine, either: AbortSignal) =>
        isUnlaunched(kind)
          ? this.#launchWith(provisioning, reachable, either)
          : this.#configure(session, inputs, reachable, either)
      const start = () => awake.then(() => machine)
      const begin = isUnlaunched(kind) ? undefined : afterFirstMoments(awake)
      return { session, ...(await machines.provision({ session, start, deliver, begin, signal })) }
    } catch (error) {
      const isOfMachine = error instanceof BerthError && machineFailures.includes(error.code)
      if (signal.aborted || !isOfMachine) throw error
      logger.warn({ err: error, sessionId: session.id }, 'a machine of the reserve is unusable; starting another one')
      reserve.noteMiss('failed')
      return undefined
    }
  }

  async #newMachine(session: Session): Promise<Session> {
    const { store, machines, clock, logger } = this.#options
    await machines.stop(session)
    const changed = await store.changeMachine(session.id, newId('machine', clock.now()))
    if (!changed) throw new BerthError('session_ended_while_starting')
    logger.info({ sessionId: session.id, machineId: changed.machine_id }, 'a session is allocated a machine')
    return changed
  }

  /** Creates take precedence over the reserve for the memory of this host. */
  async #provisionCold(provisioning: Provisioning): Promise<Provisioned> {
    const { reserve } = this.#options
    try {
      return await this.#start(provisioning)
    } catch (error) {
      const lacksRoom = error instanceof BerthError && error.code === 'capacity_exhausted'
      if (lacksRoom && (await reserve.makeRoom())) return this.#start(provisioning)
      throw error
    }
  }

  async #start({ session, request, inputs, signal }: Provisioning): Promise<Provisioned> {
    const { driver, machines, captchas } = this.#options
    const spec = { ...machineSpec(session, request, inputs), solvesCaptchas: captchas.solvesFor(session) }
    const start = (either: AbortSignal) => driver.start(spec, either)
    const deliver = (machine: ReachableMachine, either: AbortSignal) => this.#deliver(session, inputs, machine, either)
    return { session, ...(await machines.provision({ session, start, deliver, signal })) }
  }

  /** Sends the agent the initial settings of the session. A start page replaces the tabs of a profile. */
  async #deliver(
    session: Session,
    { extensions, profile }: LaunchInputs,
    machine: ReachableMachine,
    signal: AbortSignal,
  ): Promise<void> {
    const { profiles, sessionExtensions } = this.#options
    const tabs = session.start_url === null ? 'restore' : 'blank'
    // In parallel: the response for extensions comes when the browser runs, and the browser waits for the profile.
    await Promise.all([
      profile?.hasState && profiles.load(profile.id, machine, { tabs, signal }),
      extensions.length > 0 && sessionExtensions.give(machine, extensions, signal),
      this.#configurePages(session, machine),
    ])
  }

  /** Telemetry first, so that it captures the start page. */
  async #configurePages({ id, start_url, telemetry }: Session, machine: ReachableMachine): Promise<void> {
    if (telemetry) await this.#options.telemetry.configure(id, telemetry)
    if (start_url !== null) await openStartPage(machine, start_url)
  }

  /**
   * Like `#deliver`, for an agent with a running browser. The agent responds before the size and the start page are
   * applied; clients of the browser wait for these. A relaunch comes first, and the start page last.
   */
  async #configure(
    session: Session,
    { extensions }: LaunchInputs,
    machine: ReachableMachine,
    signal: AbortSignal,
  ): Promise<void> {
    const { sessionExtensions, telemetry } = this.#options
    if (session.kiosk_mode) await configure(machine, windowFor(session), signal)
    const isSized = session.kiosk_mode || isReserveWindow(session.viewport)
    const answersSoon = { clients_wait: true }
    // Before the size, whose change would slow it.
    if (extensions.length > 0) await sessionExtensions.give(machine, extensions, signal)
    if (!isSized) await configure(machine, { viewport: windowOf(session.viewport), ...answersSoon }, signal)
    // Before the start page, so that it captures that page.
    if (session.telemetry) await telemetry.configure(session.id, session.telemetry)
    if (session.start_url !== null) await configure(machine, { start_url: session.start_url, ...answersSoon }, signal)
  }

  /**
   * Like `#deliver`, for an agent that has not launched its browser. The launch comes last and includes the extensions.
   */
  async #launchWith(
    { session, request, inputs }: Provisioning,
    machine: ReachableMachine,
    signal: AbortSignal,
  ): Promise<void> {
    const { chromePolicy } = machineSpec(session, request, inputs)
    const hasPolicies = Object.keys(chromePolicy).length > 0
    if (hasPolicies) {
      await this.#options.driver.changePolicies(session.machine_id, (before) => ({ ...before, ...chromePolicy }))
    }
    const isAsWaiting = isReserveWindow(session.viewport) && !session.kiosk_mode && !session.stealth
    const settings = {
      ...(!isAsWaiting && { ...windowFor(session), stealth: session.stealth }),
      ...(hasPolicies && { has_new_policies: true }),
    }
    const launch = !inputs.profile?.hasState
    if (launch || !isAsWaiting || hasPolicies) await configure(machine, { ...settings, launch }, signal)
    await this.#deliver(session, inputs, machine, signal)
  }
}

/** The settings that machines of the reserve are not started with. */
function windowFor({ viewport, kiosk_mode, headless }: Session): BrowserConfiguration {
  return { viewport: windowOf(viewport), ...(!headless && { kiosk_mode }) }
}

async function configure(
  machine: ReachableMachine,
  configuration: BrowserConfiguration,
  signal: AbortSignal,
): Promise<void> {
  await commandAgent(machine, configureAgent, configuration, {
    limitMilliseconds: configurationLimitMilliseconds,
    signal,
  })
}

/** Failures of a claimed machine. Other failures would also occur with another machine. */
const machineFailures: readonly string[] = ['session_start_failed', 'session_unreachable']

/** Responds before the page exists. The agent opens it then, and its errors appear in the page. */
async function openStartPage(machine: ReachableMachine, startUrl: string): Promise<void> {
  const options = { limitMilliseconds: configurationLimitMilliseconds }
  await commandAgent(machine, configureAgent, { start_url: startUrl }, options).catch((cause: unknown) => {
    throw new Error('its agent did not accept the start page', { cause })
  })
}
