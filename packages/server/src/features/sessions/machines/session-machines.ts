import type { AgentEventRecord } from '@berth/contract/agent/agent-endpoints.ts'
import type { MachineId, SessionId } from '@berth/contract/common/ids.ts'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { settleAll } from '@berth/runtime/async/settle-all.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { z } from 'zod'
import { AgentEventReader } from '../../../agent-link/agent-event-reader.ts'
import { AgentWatch, type AgentWatchHandlers } from '../../../agent-link/agent-watch.ts'
import { type CommandOptions, commandAgent } from '../../../agent-link/command-agent.ts'
import type { Driver, Machine, ReachableMachine } from '../../../drivers/driver.ts'
import type { EgressLink } from '../../../egress-link/egress-link.ts'
import type { SessionTelemetry } from '../../telemetry/session-telemetry-service.ts'
import type { Session, SessionOnMachine } from '../records/session.ts'
import type { SessionStore } from '../records/session-store.ts'
import type { LifecycleEvents } from './lifecycle-events.ts'
import type { EgressSubject, SessionEgress } from './session-egress.ts'
import { StandbyMachine } from './standby-machine.ts'
import { StandbyNotes } from './standby-notes.ts'

const startLimitMilliseconds = 45_000
const maxReasonLength = 200

interface LiveMachine {
  readonly machine: StandbyMachine
  readonly watch: AgentWatch
  readonly agentEvents: AgentEventReader
  /** The session counts as active before this time. */
  readonly createdAt: Date | undefined
  /** When the last activity ended, as the agent reports it. Null during activity, undefined before the first report. */
  idleSince: Date | null | undefined
  /** The value in the database. */
  notedIdleSince: Date | null | undefined
  isNoting: boolean
  readonly standbyNotes: StandbyNotes
}

/** How to adopt the machine of a session. */
interface AdoptOptions {
  readonly gpu: boolean
  /** For a machine of an earlier server: whether that server froze it. */
  readonly isFrozen?: boolean
  /** For a machine that waited for its session: it counts as active before this time. */
  readonly createdAt?: Date
  /** Until it resolves, the agent receives no requests. When absent, it does as soon as the machine runs. */
  readonly begin?: Promise<void>
}

interface SessionMachinesOptions {
  readonly driver: Driver
  readonly store: SessionStore
  readonly egress: SessionEgress
  readonly egressLink: EgressLink
  readonly events: LifecycleEvents
  /** The time without activity after which a machine is frozen. When absent, machines are never frozen. */
  readonly standbyMilliseconds: number | undefined
  /** Whether this server may freeze machines. False while other servers may count it as gone. */
  readonly mayStandBy: () => boolean
  readonly clock: Clock
  readonly telemetry: SessionTelemetry
  /** Reports a crash to the session's webhooks, once for each key. */
  readonly recordCrash: (id: SessionId, key: string, at: Date, service: string) => Promise<void>
  readonly logger: Logger
}

interface ProvisionOptions {
  readonly session: Session
  /** Starts the machine of the session, or thaws the one that it has claimed. */
  readonly start: (signal: AbortSignal) => Promise<Machine>
  /** Sends the agent the initial settings of the session. */
  readonly deliver?: (machine: ReachableMachine, signal: AbortSignal) => Promise<void>
  /**
   * For a machine that was frozen when its browser was ready: until it resolves, the server does not follow the agent.
   */
  readonly begin?: Promise<void> | undefined
  readonly signal: AbortSignal
}

/** The machines of this server's sessions, with the streams of their agents and their routes. */
export class SessionMachines {
  readonly #options: SessionMachinesOptions
  readonly #live = new Map<SessionId, LiveMachine>()
  /** Sessions whose machines do not exist or are not ready yet. If such a machine ends, the creator cleans up. */
  readonly #expected = new Set<SessionId>()
  /** Sessions that other servers have taken over. Open connections on this server continue. */
  readonly #handedOver = new Map<SessionId, StandbyMachine>()

  #returnedBytes = 0

  constructor(options: SessionMachinesOptions) {
    this.#options = options
  }

  /** Marks a session that will have a machine: until the disposal, it does not count as having lost it. */
  expect(id: SessionId): Disposable {
    this.#expected.add(id)
    return { [Symbol.dispose]: () => this.#expected.delete(id) }
  }

  /** Whether the session has a machine here, or will have one. */
  has(id: SessionId): boolean {
    return this.#live.has(id) || this.#expected.has(id)
  }

  /** Whether the machine of the session has ended here and is not removed yet. */
  hasGone(id: SessionId): boolean {
    return this.#live.get(id)?.watch.isOver ?? false
  }

  /** The sessions with a machine on this server. */
  list(): readonly SessionOnMachine[] {
    return [...this.#live].map(([id, { machine }]) => ({ id, machine_id: machine.id }))
  }

  /** The sessions whose row must exist. The row of an expected session may not be written yet. */
  listRecorded(): readonly SessionOnMachine[] {
    return this.list().filter(({ id }) => !this.#expected.has(id))
  }

  /**
   * Starts the machine of an expected session and resolves when the browser can be used. After a rejection, nothing of
   * the machine is left.
   */
  async provision({
    session,
    start,
    deliver,
    begin,
    signal,
  }: ProvisionOptions): Promise<{ readonly idleSince: Date | null }> {
    const { driver, logger } = this.#options
    const { machine_id: machineId } = session
    const limit = AbortSignal.timeout(startLimitMilliseconds)
    const either = AbortSignal.any([signal, limit])
    try {
      const { gpu, created_at: createdAt } = session
      const live = this.adopt(session.id, await start(either), { gpu, createdAt, ...(begin && { begin }) })
      // An agent that fails before it has received everything reports it on its stream of states.
      const prepared = Promise.all([this.openRoute(session), deliver?.(live.machine, either)])
      const { ready } = live.watch
      // A machine that ends meanwhile rejects `ready`.
      const usable = begin ? Promise.race([prepared, ready.then(() => prepared)]) : Promise.all([prepared, ready])
      await Promise.race([usable, rejectedBy(either)])
      return { idleSince: live.idleSince ?? (begin ? createdAt : null) }
    } catch (cause) {
      const lastLines = await driver.lastLines(machineId)
      await this.stop(session)
      if (signal.aborted || cause instanceof BerthError) throw cause
      logger.error({ err: cause, sessionId: session.id, machineId, lastLines }, 'a session did not start')
      const reason = limit.aborted
        ? `the browser did not answer within ${startLimitMilliseconds / 1000} s`
        : firstLine((cause as Error).message)
      throw new BerthError('session_start_failed', { reason }, { cause })
    }
  }

  /** Adopts the machine of a session: a new one, or one of an earlier server. */
  adopt(id: SessionId, machine: Machine, { gpu, isFrozen, createdAt, ...others }: AdoptOptions): LiveMachine {
    const { events, logger } = this.#options
    const standby = this.#standbyMachine(id, machine, { gpu, isFrozen: isFrozen ?? false })
    const begin = others.begin ?? standby.awake
    // Only these streams and that of telemetry use the machine directly, because they must not count as activity of the
    // session.
    const handlers: AgentWatchHandlers = {
      onState: (state) => this.#takeActivity(id, state.idle_since === null ? null : new Date(state.idle_since)),
      onGone: (reason) => {
        if (this.#expected.has(id)) return
        logger.warn({ sessionId: id }, `a session ends: ${reason}`)
        events.emit('machineEnded', id)
      },
    }
    const watch = new AgentWatch(machine, handlers, { begin })
    const agentEvents = new AgentEventReader(machine, (record) => this.#takeEvent(id, record), { begin })
    const standbyNotes = new StandbyNotes({ id, ...this.#options })
    const unknown = { idleSince: undefined, notedIdleSince: undefined }
    this.#handedOver.delete(id)
    const live = { machine: standby, watch, agentEvents, createdAt, ...unknown, isNoting: false, standbyNotes }
    this.#live.set(id, live)
    this.#options.telemetry.add(id, { commands: standby, events: onceAwake(machine, begin) })
    if (isFrozen !== undefined) standbyNotes.note(isFrozen)
    return live
  }

  #standbyMachine(
    id: SessionId,
    machine: Machine,
    { gpu, isFrozen }: Required<Pick<AdoptOptions, 'gpu' | 'isFrozen'>>,
  ): StandbyMachine {
    const { driver, standbyMilliseconds, logger } = this.#options
    // Work of a GPU cannot be frozen.
    const canStandBy = !gpu && driver.capabilities.canFreeze
    return new StandbyMachine({
      machine,
      driver,
      isFrozen,
      afterMilliseconds: canStandBy ? standbyMilliseconds : undefined,
      mayStandBy: () => !this.#expected.has(id) && this.#options.mayStandBy(),
      onChange: (isNow) => this.#live.get(id)?.standbyNotes.note(isNow),
      onMemoryReturned: (bytes) => {
        this.#returnedBytes += bytes
      },
      onFailure: (error) => logger.warn({ err: error, sessionId: id }, 'the standby of a session failed'),
    })
  }

  /** If the database is unavailable, the agent sends it again. */
  async #takeEvent(sessionId: SessionId, record: AgentEventRecord): Promise<void> {
    const { recordCrash, events, logger } = this.#options
    const { sequence } = record
    if ('lost' in record) {
      logger.warn({ sessionId, sequence, lost: record.lost }, 'events of a session are lost')
      return
    }
    if (record.event.event === 'captcha_found') {
      const { event: _event, at: _at, ...task } = record.event
      events.emit('captchaFound', sessionId, task)
      return
    }
    const { service, detail, at } = record.event
    await recordCrash(sessionId, `service_crashed ${sessionId} ${sequence}`, new Date(at), service)
    logger.warn({ sessionId, sequence, service, detail, at: new Date(at) }, 'a program of a session crashed')
  }

  /**
   * Opens or updates the route of the session's machine, as its row defines it. Repeated for a new egress process and
   * after an update.
   */
  async openRoute(session: EgressSubject): Promise<void> {
    const { egress, egressLink } = this.#options
    const settings = await egress.settingsOf(session)
    // It may have been stopped meanwhile. No route may be opened after the end of the machine.
    await egressLink.openRoute(this.get(session.id), settings)
  }

  #takeActivity(id: SessionId, idleSince: Date | null): void {
    const live = this.#live.get(id)
    if (!live) return
    live.idleSince = idleSince && later(idleSince, live.createdAt)
    live.machine.noteActivity(idleSince !== null)
    void this.#note(id, live)
  }

  /** Writes again what could not be written while the database was unavailable. */
  noteMissed(): void {
    for (const [id, live] of this.#live) {
      void this.#note(id, live)
      live.standbyNotes.retry()
    }
  }

  /** One write at a time: of two concurrent ones, the older could come last, and the session would never be idle. */
  async #note(id: SessionId, live: LiveMachine): Promise<void> {
    if (live.isNoting) return
    live.isNoting = true
    const { store, logger } = this.#options
    try {
      while (live.idleSince !== undefined && live.idleSince !== live.notedIdleSince) {
        const { idleSince } = live
        await store.setIdleSince(id, idleSince)
        live.notedIdleSince = idleSince
      }
    } catch (error) {
      // The reaper's next round repeats it.
      const facts = { sessionId: id, reason: (error as Error).message }
      logger.warn(facts, 'could not record the activity of a session; retrying')
    } finally {
      live.isNoting = false
    }
  }

  /** The memory that frozen sessions have returned to the host since the start of this server. */
  get returnedBytes(): number {
    return this.#returnedBytes
  }

  countFrozen(): number {
    return [...this.#live.values()].filter(({ machine }) => machine.isFrozen).length
  }

  /** Whether the session has a frozen machine here. */
  isFrozen(id: SessionId): boolean {
    return this.#live.get(id)?.machine.isFrozen ?? false
  }

  sessionOn(machineId: MachineId): SessionId | undefined {
    return [...this.#live].find(([, { machine }]) => machine.id === machineId)?.[0]
  }

  /** Freezes the machine of a session now, unless it is in use. */
  async standBy(id: SessionId): Promise<void> {
    await this.#live.get(id)?.machine.standBy()
  }

  /** The session's machine, unless it is on another server or gone. A connection to it wakes the session. */
  find(id: SessionId): Machine | undefined {
    return this.#live.get(id)?.machine ?? this.#handedOver.get(id)
  }

  /** Like `find`, but throws `session_unreachable`. */
  get(id: SessionId): Machine {
    const machine = this.find(id)
    if (!machine) throw new BerthError('session_unreachable')
    return machine
  }

  /** Sends a command to the session's agent. */
  async command<Body extends z.ZodType, Reply extends z.ZodType>(
    id: SessionId,
    endpoint: Endpoint<z.ZodType, z.ZodType, Body, Reply>,
    body: z.input<Body>,
    options?: CommandOptions,
  ): Promise<z.output<Reply>> {
    return commandAgent(this.get(id), endpoint, body, options)
  }

  /** Sends a command without waking the session. It does not count as activity. */
  async commandPassively<Body extends z.ZodType, Reply extends z.ZodType>(
    id: SessionId,
    endpoint: Endpoint<z.ZodType, z.ZodType, Body, Reply>,
    body: z.input<Body>,
    options?: CommandOptions,
  ): Promise<z.output<Reply>> {
    const live = this.#live.get(id)
    if (!live) throw new BerthError('session_unreachable')
    return commandAgent(live.machine.passive, endpoint, body, options)
  }

  /** Closes the connections of its CDP clients. A frozen session has none. */
  async endClients(id: SessionId): Promise<void> {
    if (!this.isFrozen(id)) await this.#options.telemetry.endClients(id)
  }

  /** Call when another server has taken over the session. Open connections and requests on this server continue. */
  async handOver(id: SessionId): Promise<void> {
    const live = this.#live.get(id)
    if (!live) return
    this.#handedOver.set(id, live.machine)
    await this.detach(id)
  }

  /** Detaches from the machine of a session whose create fails. The machine keeps running. */
  async detach(id: SessionId): Promise<void> {
    const live = this.#live.get(id)
    this.#live.delete(id)
    live?.watch.close()
    live?.agentEvents.close()
    await Promise.all([live?.machine.close(), this.#options.telemetry.finish(id)])
  }

  /** Stops the session's machine in any state and removes all of it. */
  async stop({ id, machine_id }: SessionOnMachine): Promise<void> {
    const live = this.#live.get(id)
    live?.watch.close()
    this.#live.delete(id)
    await live?.machine.close()
    try {
      await this.remove(machine_id)
    } finally {
      await Promise.all([live?.agentEvents.finish(), this.#options.telemetry.finish(id)])
    }
  }

  /** Removes a machine and its route, in parallel. */
  async remove(machineId: MachineId): Promise<void> {
    const { driver, egressLink } = this.#options
    await settleAll([driver.stop(machineId), egressLink.closeRoute(machineId)])
  }

  /** Detaches from every machine. They keep running. */
  release(): void {
    for (const { machine, watch, agentEvents } of this.#live.values()) {
      void machine.close()
      watch.close()
      agentEvents.close()
    }
    this.#live.clear()
    this.#handedOver.clear()
    this.#options.telemetry.release()
  }
}

/**
 * The following lines contain the output of programs, which can be long and contain details of the host. They are only
 * for the log.
 */
function firstLine(message: string): string {
  return message.split('\n', 1)[0]?.slice(0, maxReasonLength) ?? ''
}

/** Connects to the machine as soon as it runs. */
function onceAwake(machine: Machine, awake: Promise<void>): ReachableMachine {
  return {
    connect: async () => {
      await awake
      return machine.connect()
    },
  }
}

function later(one: Date, other: Date | undefined): Date {
  return !other || one > other ? one : other
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
