import {
  configureAgent,
  endClients,
  reportMemoryKills,
  type TelemetryCapture,
} from '@berth/contract/agent/agent-endpoints.ts'
import { type BrowserTelemetryConfig, telemetryCategories } from '@berth/contract/browsers/telemetry-config.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { TelemetryEnvelope } from '@berth/contract/telemetry/telemetry-event.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { AgentRefusal, commandAgent } from '../../agent-link/command-agent.ts'
import type { ReachableMachine } from '../../drivers/driver.ts'
import { type StoredListener, TelemetryIntake } from './telemetry-intake.ts'
import type { TelemetryStore } from './telemetry-store.ts'
import type { TelemetryWriter } from './telemetry-writer.ts'

/** An agent waits 3 s for pages, and one that has just started loads its programs first. */
const configurationLimitMilliseconds = 45_000
/** The longest delay of the end of a session. */
const endClientsLimitMilliseconds = 500

interface SessionTelemetryOptions {
  readonly store: TelemetryStore
  readonly writer: TelemetryWriter
  readonly clock: Clock
  readonly logger: Logger
}

/** The two kinds of connections to the agent of a session. */
interface AgentMachines {
  /** A connection counts as use of the session and wakes it. */
  readonly commands: ReachableMachine
  /** A connection does not count as use, and waits until the session wakes. */
  readonly events: ReachableMachine
}

type ConfiguredListener = (sessionId: SessionId, config: BrowserTelemetryConfig | null) => void

/** Stores the telemetry of this server's sessions, which their agents send. */
export class SessionTelemetry {
  readonly #options: SessionTelemetryOptions
  readonly #machines = new Map<SessionId, AgentMachines>()
  readonly #intakes = new Map<SessionId, TelemetryIntake>()
  readonly #listeners: StoredListener[] = []
  readonly #configured: ConfiguredListener[] = []

  constructor(options: SessionTelemetryOptions) {
    this.#options = options
  }

  /** The listener is called with the events of every session after they are stored. */
  onStored(listener: StoredListener): void {
    this.#listeners.push(listener)
  }

  /** The listener is called with the capture settings of each session before they are applied. */
  onConfigured(listener: ConfiguredListener): void {
    this.#configured.push(listener)
  }

  /** Call when the session has this machine. */
  add(id: SessionId, machines: AgentMachines): void {
    this.#machines.set(id, machines)
  }

  /** Makes the agent of the session capture these categories from now on. */
  async configure(
    id: SessionId,
    config: BrowserTelemetryConfig | null,
    { isRestore = false }: { readonly isRestore?: boolean } = {},
  ): Promise<void> {
    const machines = this.#machines.get(id)
    if (!machines) throw new BerthError('session_unreachable')
    if (config) this.#open(id, machines.events)
    for (const listener of this.#configured) listener(id, config)
    const body = { telemetry: captureOf(config), ...(isRestore && { is_restore: true }) }
    const options = { limitMilliseconds: configurationLimitMilliseconds }
    await commandAgent(machines.commands, configureAgent, body, options).catch((cause: unknown) => {
      if (!(cause instanceof AgentRefusal)) throw cause
      throw new BerthError('session_update_failed', { reason: 'the agent rejected the telemetry settings.' }, { cause })
    })
  }

  /** Reports that the kernel killed processes of the session for lack of memory. */
  reportMemoryKills(id: SessionId, processes: number): void {
    const machine = this.#machines.get(id)?.commands
    // Not reported for a session without telemetry, or to an agent that was killed itself.
    if (machine && this.#intakes.has(id)) commandAgent(machine, reportMemoryKills, { processes }).catch(() => {})
  }

  /** Call before the session ends: makes its agent report the disconnects of its clients, while it can. */
  async endClients(id: SessionId): Promise<void> {
    const machine = this.#machines.get(id)?.commands
    if (!machine || !this.#intakes.has(id)) return
    const limit = { limitMilliseconds: endClientsLimitMilliseconds }
    await commandAgent(machine, endClients, {}, limit).catch(() => {}) // Stopping its machine closes them too.
  }

  /** The events of the session after this one, or new ones only. Undefined if the session has no machine here. */
  async follow(
    id: SessionId,
    after: number | undefined,
    signal: AbortSignal,
  ): Promise<AsyncIterable<TelemetryEnvelope> | undefined> {
    const machine = this.#machines.get(id)?.events
    if (!machine) return undefined
    const feed = await this.#open(id, machine).feed
    return feed.follow(after, signal)
  }

  /** Call when the machine has ended: stores its remaining events. */
  async finish(id: SessionId): Promise<void> {
    this.#machines.delete(id)
    const intake = this.#intakes.get(id)
    this.#intakes.delete(id)
    await intake?.finish()
  }

  /** Detaches from every session. They keep running. */
  release(): void {
    for (const intake of this.#intakes.values()) intake.close()
    this.#intakes.clear()
    this.#machines.clear()
  }

  #open(id: SessionId, machine: ReachableMachine): TelemetryIntake {
    const known = this.#intakes.get(id)
    if (known) return known
    const { store, writer, clock, logger } = this.#options
    const onStored: StoredListener = (...stored) => {
      for (const listener of this.#listeners) listener(...stored)
    }
    const intake = new TelemetryIntake({ sessionId: id, machine, store, writer, onStored, clock, logger })
    this.#intakes.set(id, intake)
    return intake
  }
}

function captureOf(config: BrowserTelemetryConfig | null): TelemetryCapture | null {
  if (!config) return null
  return {
    categories: telemetryCategories.filter((category) => config.browser[category]?.enabled),
    excluded_methods: config.browser.control?.cdp?.excluded_methods ?? [],
  }
}
