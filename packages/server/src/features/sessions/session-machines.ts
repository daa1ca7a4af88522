import type { AgentEventRecord } from '@berth/contract/agent/agent-endpoints.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { z } from 'zod'
import { AgentEventReader } from '../../agent-link/agent-event-reader.ts'
import { AgentWatch } from '../../agent-link/agent-watch.ts'
import { type CommandOptions, commandAgent } from '../../agent-link/command-agent.ts'
import type { Driver, Machine, MachineSpec } from '../../drivers/driver.ts'
import type { SessionStore } from './session-store.ts'

const startLimitMilliseconds = 45_000
const maxReasonLength = 200

interface LiveMachine {
  readonly machine: Machine
  readonly watch: AgentWatch
  readonly events: AgentEventReader
  /** When the last activity ended, as the agent tells it; null while there is some; undefined before it has told. */
  idleSince: Date | null | undefined
  /** What of it is in the database. */
  notedIdleSince: Date | null | undefined
  isNoting: boolean
}

interface SessionMachinesOptions {
  readonly driver: Driver
  readonly store: SessionStore
  readonly logger: Logger
}

/** The machines of the sessions that this server runs, each with the streams of its agent. */
export class SessionMachines {
  readonly #driver: Driver
  readonly #store: SessionStore
  readonly #logger: Logger
  readonly #live = new Map<SessionId, LiveMachine>()
  /** Whose machines are not there, or not ready, yet: when one of these goes, its creator cleans up. */
  readonly #expected = new Set<SessionId>()
  #onGone: (id: SessionId) => void = () => {}

  constructor({ driver, store, logger }: SessionMachinesOptions) {
    this.#driver = driver
    this.#store = store
    this.#logger = logger
  }

  /** Names who ends a session whose machine has gone. */
  onGone(handler: (id: SessionId) => void): void {
    this.#onGone = handler
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
  list(): readonly SessionId[] {
    return [...this.#live.keys()]
  }

  /**
   * Starts the machine of an expected session and resolves when its browser can be used. What the agent waits for
   * before it launches the browser is given to it by `furnish`. After a rejection nothing of it is left.
   */
  async start(
    spec: MachineSpec,
    signal: AbortSignal,
    furnish?: (agentSocket: string, signal: AbortSignal) => Promise<void>,
  ): Promise<{ readonly idleSince: Date | null }> {
    const id = spec.sessionId
    const limit = AbortSignal.timeout(startLimitMilliseconds)
    const either = AbortSignal.any([signal, limit])
    try {
      const live = this.adopt(await this.#driver.start(spec, either))
      const furnished = furnish?.(live.machine.agentSocket, either)
      // An agent that fails before it has been furnished says so on its stream of states.
      await Promise.race([Promise.all([furnished, live.watch.ready]), rejectedBy(either)])
      return { idleSince: live.idleSince ?? null }
    } catch (cause) {
      const lastLines = await this.#driver.lastLines(id)
      await this.stop(id)
      if (signal.aborted || cause instanceof BerthError) throw cause
      this.#logger.error({ err: cause, sessionId: id, lastLines }, 'a session did not start')
      const reason = limit.aborted
        ? `the browser did not answer within ${startLimitMilliseconds / 1000} s`
        : firstLine((cause as Error).message)
      throw new BerthError('session_start_failed', { reason }, { cause })
    }
  }

  /** Takes up a running machine: a new one, or one that an earlier server left. */
  adopt(machine: Machine): LiveMachine {
    const id = machine.sessionId
    const watch = new AgentWatch(machine, {
      onState: (state) => this.#takeActivity(id, state.idle_since === null ? null : new Date(state.idle_since)),
      onGone: (reason) => {
        if (this.#expected.has(id)) return
        this.#logger.warn({ sessionId: id }, `a session ends: ${reason}`)
        this.#onGone(id)
      },
    })
    const events = new AgentEventReader(machine.agentSocket, (record) => this.#logEvent(id, record))
    const unknown = { idleSince: undefined, notedIdleSince: undefined }
    const live: LiveMachine = { machine, watch, events, ...unknown, isNoting: false }
    this.#live.set(id, live)
    return live
  }

  #logEvent(sessionId: SessionId, record: AgentEventRecord): void {
    const { sequence } = record
    if ('lost' in record) {
      this.#logger.warn({ sessionId, sequence, lost: record.lost }, 'events of a session are lost')
      return
    }
    const { service, detail, at } = record.event
    this.#logger.warn({ sessionId, sequence, service, detail, at: new Date(at) }, 'a program of a session crashed')
  }

  #takeActivity(id: SessionId, idleSince: Date | null): void {
    const live = this.#live.get(id)
    if (!live) return
    live.idleSince = idleSince
    void this.#note(id, live)
  }

  /** Notes again what the database has missed. */
  noteMissed(): void {
    for (const [id, live] of this.#live) void this.#note(id, live)
  }

  /** One note at a time: of two on their way at once, the older could arrive last, and a session would never be idle. */
  async #note(id: SessionId, live: LiveMachine): Promise<void> {
    if (live.isNoting) return
    live.isNoting = true
    try {
      while (live.idleSince !== undefined && live.idleSince !== live.notedIdleSince) {
        const { idleSince } = live
        await this.#store.setIdleSince(id, idleSince)
        live.notedIdleSince = idleSince
      }
    } catch (error) {
      // The reaper's next round has it noted.
      this.#logger.warn(
        { sessionId: id, reason: (error as Error).message },
        'could not record the activity of a session; trying again',
      )
    } finally {
      live.isNoting = false
    }
  }

  /** The socket of the session's agent, unless its machine is elsewhere or gone. */
  findAgentSocket(id: SessionId): string | undefined {
    return this.#live.get(id)?.machine.agentSocket
  }

  /** The same; `session_unreachable` when its machine is elsewhere or gone. */
  getAgentSocket(id: SessionId): string {
    const agentSocket = this.findAgentSocket(id)
    if (!agentSocket) throw new BerthError('session_unreachable')
    return agentSocket
  }

  /** Has the session's agent do something. */
  async command<Body extends z.ZodType, Reply extends z.ZodType>(
    id: SessionId,
    endpoint: Endpoint<z.ZodType, z.ZodType, Body, Reply>,
    body: z.input<Body>,
    options?: CommandOptions,
  ): Promise<z.output<Reply>> {
    return commandAgent(this.getAgentSocket(id), endpoint, body, options)
  }

  /** Ends the machine, whatever it is doing, and removes all of it. */
  async stop(id: SessionId): Promise<void> {
    const live = this.#live.get(id)
    live?.watch.close()
    this.#live.delete(id)
    try {
      await this.#driver.stop(id)
    } finally {
      await live?.events.finish()
    }
  }

  /** Lets go of every machine and leaves it running. */
  release(): void {
    for (const { watch, events } of this.#live.values()) {
      watch.close()
      events.close()
    }
    this.#live.clear()
  }
}

/** What programs wrote behind it is for the log: it can be long, and tell of the host. */
function firstLine(message: string): string {
  return message.split('\n', 1)[0]?.slice(0, maxReasonLength) ?? ''
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
