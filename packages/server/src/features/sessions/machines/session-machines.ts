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
  /** Earlier than that it was not idle. */
  readonly createdAt: Date | undefined
  /** When the last activity ended, as the agent tells it; null while there is some; undefined before it has told. */
  idleSince: Date | null | undefined
  /** What of it is in the database. */
  notedIdleSince: Date | null | undefined
  isNoting: boolean
  readonly standbyNotes: StandbyNotes
}

/** How the machine of a session is taken up. */
interface AdoptOptions {
  readonly gpu: boolean
  /** Of a machine that an earlier server has left: whether that one has frozen it. */
  readonly isFrozen?: boolean
  /** Of a machine that has waited for its session: before that it was not idle. */
  readonly createdAt?: Date
  /** Before it resolves nothing is asked of the agent; absent: as soon as the machine runs. */
  readonly begin?: Promise<void>
}

interface SessionMachinesOptions {
  readonly driver: Driver
  readonly store: SessionStore
  readonly egress: SessionEgress
  readonly egressLink: EgressLink
  readonly events: LifecycleEvents
  /** After how long without activity a machine is frozen. Absent: none ever is. */
  readonly standbyMilliseconds: number | undefined
  /** Whether this server may freeze machines: not when the others may have taken it for gone. */
  readonly mayStandBy: () => boolean
  readonly clock: Clock
  readonly telemetry: SessionTelemetry
  /** Tells the webhooks of the session, once for each key. */
  readonly recordCrash: (id: SessionId, key: string, at: Date, service: string) => Promise<void>
  readonly logger: Logger
}

interface ProvisionOptions {
  readonly session: Session
  /** Starts the machine that the session names, or lets one go on that waits for it. */
  readonly start: (signal: AbortSignal) => Promise<Machine>
  /** Gives the agent what the session starts with. */
  readonly deliver?: (machine: ReachableMachine, signal: AbortSignal) => Promise<void>
  /** Of a machine whose browser has answered before it was frozen: before it resolves the server follows no agent. */
  readonly begin?: Promise<void> | undefined
  readonly signal: AbortSignal
}

/** Which machine each session of this server has, with the streams of its agent and its route to egress. */
export class SessionMachines {
  readonly #options: SessionMachinesOptions
  readonly #live = new Map<SessionId, LiveMachine>()
  /** Whose machines are not there, or not ready, yet: when one of these goes, its creator cleans up. */
  readonly #expected = new Set<SessionId>()
  /** Of sessions that other servers serve by now: what this one does in them goes on. */
  readonly #handedOver = new Map<SessionId, StandbyMachine>()

  #returnedBytes = 0

  constructor(options: SessionMachinesOptions) {
    this.#options = options
  }

  /** A session that will have a machine: until the disposal it is not taken for one that has lost it. */
  expect(id: SessionId): Disposable {
    this.#expected.add(id)
    return { [Symbol.dispose]: () => this.#expected.delete(id) }
  }

  /** Whether the session has a machine here, or will have one. */
  has(id: SessionId): boolean {
    return this.#live.has(id) || this.#expected.has(id)
  }

  /** Whether the session had a machine here that has ended, and is not removed yet. */
  hasGone(id: SessionId): boolean {
    return this.#live.get(id)?.watch.isOver ?? false
  }

  /** The sessions that have a machine here. */
  list(): readonly SessionOnMachine[] {
    return [...this.#live].map(([id, { machine }]) => ({ id, machine_id: machine.id }))
  }

  /** Those of them that must have a row. Of one that is expected it may still be on its way to the database. */
  listRecorded(): readonly SessionOnMachine[] {
    return this.list().filter(({ id }) => !this.#expected.has(id))
  }

  /**
   * Provides an expected session with its machine and resolves when the browser can be used. After a rejection nothing
   * of the machine is left.
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
      // An agent that fails before it has been given everything says so on its stream of states.
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

  /** Takes up the machine of a session: a new one, or one that an earlier server left. */
  adopt(id: SessionId, machine: Machine, { gpu, isFrozen, createdAt, ...others }: AdoptOptions): LiveMachine {
    const { events, logger } = this.#options
    const standby = this.#standbyMachine(id, machine, { gpu, isFrozen: isFrozen ?? false })
    const begin = others.begin ?? standby.awake
    // These and the telemetry's stream alone see the machine itself: that the server listens to an agent is no use of its
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
    // What a GPU has been told to do goes on.
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

  /** When the database is away, the agent tells it again. */
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

  /** Has egress serve the session's machine as its row says. Repeated for a later egress, or after an update. */
  async openRoute(session: EgressSubject): Promise<void> {
    const { egress, egressLink } = this.#options
    const settings = await egress.settingsOf(session)
    // It may have been stopped meanwhile: then no route may be opened behind the one that was closed.
    await egressLink.openRoute(this.get(session.id), settings)
  }

  #takeActivity(id: SessionId, idleSince: Date | null): void {
    const live = this.#live.get(id)
    if (!live) return
    live.idleSince = idleSince && later(idleSince, live.createdAt)
    live.machine.noteActivity(idleSince !== null)
    void this.#note(id, live)
  }

  /** Notes again what the database has missed. */
  noteMissed(): void {
    for (const [id, live] of this.#live) {
      void this.#note(id, live)
      live.standbyNotes.retry()
    }
  }

  /** One note at a time: of two on their way at once, the older could arrive last, and a session would never be idle. */
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
      // The reaper's next round has it noted.
      const facts = { sessionId: id, reason: (error as Error).message }
      logger.warn(facts, 'could not record the activity of a session; trying again')
    } finally {
      live.isNoting = false
    }
  }

  /** What frozen sessions have given back of the host's memory since the start of this server. */
  get returnedBytes(): number {
    return this.#returnedBytes
  }

  countFrozen(): number {
    return [...this.#live.values()].filter(({ machine }) => machine.isFrozen).length
  }

  /** Whether the session has a machine here that is frozen. */
  isFrozen(id: SessionId): boolean {
    return this.#live.get(id)?.machine.isFrozen ?? false
  }

  sessionOn(machineId: MachineId): SessionId | undefined {
    return [...this.#live].find(([, { machine }]) => machine.id === machineId)?.[0]
  }

  /** Freezes the machine of a session now, unless somebody uses it. */
  async standBy(id: SessionId): Promise<void> {
    await this.#live.get(id)?.machine.standBy()
  }

  /** The session's machine, unless it is elsewhere or gone. A connection to it wakes the session. */
  find(id: SessionId): Machine | undefined {
    return this.#live.get(id)?.machine ?? this.#handedOver.get(id)
  }

  /** The same; `session_unreachable` when its machine is elsewhere or gone. */
  get(id: SessionId): Machine {
    const machine = this.find(id)
    if (!machine) throw new BerthError('session_unreachable')
    return machine
  }

  /** Has the session's agent do something. */
  async command<Body extends z.ZodType, Reply extends z.ZodType>(
    id: SessionId,
    endpoint: Endpoint<z.ZodType, z.ZodType, Body, Reply>,
    body: z.input<Body>,
    options?: CommandOptions,
  ): Promise<z.output<Reply>> {
    return commandAgent(this.get(id), endpoint, body, options)
  }

  /** The same, if it is awake: this is no use of the session, and leaves it as it is. */
  async commandAside<Body extends z.ZodType, Reply extends z.ZodType>(
    id: SessionId,
    endpoint: Endpoint<z.ZodType, z.ZodType, Body, Reply>,
    body: z.input<Body>,
    options?: CommandOptions,
  ): Promise<z.output<Reply>> {
    const live = this.#live.get(id)
    if (!live) throw new BerthError('session_unreachable')
    return commandAgent(live.machine.aside, endpoint, body, options)
  }

  /** Ends the connections of its clients. One that is frozen has none. */
  async endClients(id: SessionId): Promise<void> {
    if (!this.isFrozen(id)) await this.#options.telemetry.endClients(id)
  }

  /** Another server has the machine of the session now. What is open to it here goes on, and what is begun here too. */
  async handOver(id: SessionId): Promise<void> {
    const live = this.#live.get(id)
    if (!live) return
    this.#handedOver.set(id, live.machine)
    await this.letGo(id)
  }

  /** Forgets the machine of a session that does not come about. It runs on. */
  async letGo(id: SessionId): Promise<void> {
    const live = this.#live.get(id)
    this.#live.delete(id)
    live?.watch.close()
    live?.agentEvents.close()
    await Promise.all([live?.machine.close(), this.#options.telemetry.finish(id)])
  }

  /** Ends the session's machine, whatever it is doing, and removes all of it. */
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

  /** Ends a machine and its route, and removes all of both. At once, since neither has to wait for the other to be gone. */
  async remove(machineId: MachineId): Promise<void> {
    const { driver, egressLink } = this.#options
    await settleAll([driver.stop(machineId), egressLink.closeRoute(machineId)])
  }

  /** Lets go of every machine and leaves it running. */
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

/** What programs wrote behind it is for the log: it can be long, and tell of the host. */
function firstLine(message: string): string {
  return message.split('\n', 1)[0]?.slice(0, maxReasonLength) ?? ''
}

/** The machine itself, as soon as it runs. */
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
