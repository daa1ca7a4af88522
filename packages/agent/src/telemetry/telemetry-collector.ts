import type { TelemetryCapture } from '@berth/contract/agent/agent-endpoints.ts'
import { type EventCategory, eventCategories, observedCategories } from '@berth/contract/telemetry/event-types.ts'
import type { TelemetryEvent } from '@berth/contract/telemetry/telemetry-event.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { SequencedLog } from '@berth/runtime/stream/sequenced-log.ts'
import type { Chromium } from '../browser/chromium.ts'
import type { CaptchaTasks } from './captcha-tasks.ts'
import type { Observation } from './pages/observation.ts'
import type { ProcessSnapshots } from './process-snapshots.ts'
import type { TelemetryReport, TelemetrySink } from './telemetry-sink.ts'

/** For times when the server or its database is unavailable. */
const limits = {
  maxEvents: 20_000,
  maxLength: 8 * 1024 * 1024,
  /** The server accepts no line longer than twice this. */
  maxEventLength: 512 * 1024,
}

/** A page can cause events without end. Events above this rate are counted as lost. */
const eventsPerSecond = 1_000
const maxBurst = 5_000

/** Events are sent in batches, because each write costs agent and server more than the event itself. */
const tellingPauseMilliseconds = 100

/** Limits how long pages that do not answer can delay a change. */
const attachLimitMilliseconds = 3_000

/** The telemetry of the session: its configuration, and its events until the server has stored them. */
export class TelemetryCollector implements TelemetrySink {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #captchaTasks: CaptchaTasks | undefined
  readonly #log = new SequencedLog<TelemetryEvent>(limits)
  #categories: ReadonlySet<string> = new Set()
  #excluded: ReadonlySet<string> = new Set()
  #chromium: Chromium | undefined
  #observation: Observation | undefined
  #snapshots: ProcessSnapshots | undefined
  #credit = maxBurst
  #countedAt = performance.now()

  /** With captcha tasks, pages are watched for challenges even if nothing is captured. */
  constructor(clock: Clock, logger: Logger, captchaTasks?: CaptchaTasks) {
    this.#clock = clock
    this.#logger = logger
    this.#captchaTasks = captchaTasks
  }

  get now(): Date {
    return this.#clock.now()
  }

  /** Whether events of the category are captured now. */
  captures(category: EventCategory): boolean {
    if (category === 'monitor') return observedCategories.some((observed) => this.#categories.has(observed))
    return this.#categories.has(category)
  }

  /** Whether the command is excluded although its category is captured. */
  excludes(method: string): boolean {
    return this.#excluded.has(method)
  }

  /** Adds an event if its category is captured. Returns false if there was no room for it. */
  emit({ type, source, data, truncated }: TelemetryReport): boolean {
    const category = eventCategories[type]
    if (!this.captures(category)) return true
    if (!this.#takeCredit()) {
      this.#log.skip()
      return false
    }
    const ts = this.now.getTime() * 1000
    this.#log.append({ ts, type, category, source, ...(data && { data }), ...(truncated && { truncated }) })
    return true
  }

  /** Batches of records as JSON. */
  follow(after: number | undefined, signal: AbortSignal): AsyncGenerator<readonly string[]> {
    return this.#log.followTogether(after, signal, tellingPauseMilliseconds)
  }

  /** Sends at once what has been captured. */
  flush(): void {
    this.#log.flush()
  }

  acknowledge(sequence: number): void {
    this.#log.acknowledge(sequence)
  }

  /** Changes what is captured; null captures nothing. Resolves when the open pages are observed accordingly. */
  async configure(capture: TelemetryCapture | null): Promise<void> {
    this.#categories = new Set(capture?.categories)
    this.#excluded = new Set(capture?.excluded_methods)
    await this.#watchProcesses()
    await this.#observe()
  }

  /** Called for each run of Chromium, before clients are admitted. */
  async attachTo(chromium: Chromium): Promise<void> {
    this.#chromium = chromium
    await this.#observe()
  }

  /** Notes that a program of the session has looked up a host, which hints at what its pages may show. */
  noteLookup(name: string): void {
    if (this.captures('captcha') || this.#captchaTasks) this.#observation?.noteLookup(name)
  }

  /** The kernel has killed processes of the machine because its memory was exhausted. */
  async reportMemoryKills(processes: number): Promise<void> {
    if (!this.captures('system')) return
    await this.#watchProcesses()
    for (const data of this.#snapshots?.killed(processes) ?? []) {
      this.emit({ type: 'system_oom_kill', source: { kind: 'local_process', event: 'oom_kill' }, data })
    }
  }

  /** Chromium will not be restarted. */
  giveUp(): void {
    this.emit({
      type: 'monitor_reconnect_failed',
      source: { kind: 'local_process' },
      data: { reason: 'reconnect_exhausted' },
    })
  }

  async #watchProcesses(): Promise<void> {
    if (!this.captures('system')) {
      this.#snapshots?.close()
      this.#snapshots = undefined
    } else if (!this.#snapshots) {
      const { ProcessSnapshots } = await import('./process-snapshots.ts')
      this.#snapshots ??= new ProcessSnapshots()
    }
  }

  /** Loads the observers on demand: without them, their code does not run and nothing is attached to a page. */
  async #observe(): Promise<void> {
    if (this.#categories.size === 0 && !this.#captchaTasks && !this.#observation) return
    const { Observation } = await import('./pages/observation.ts')
    this.#observation ??= new Observation(this, this.#captchaTasks)
    if (!this.#chromium) return
    const observed = this.#observation.apply(this.#chromium).catch((error: Error) => {
      this.#logger.warn({ err: error }, 'pages cannot be observed')
      const step = 'attach'
      this.emit({ type: 'monitor_init_failed', source: { kind: 'cdp' }, data: { step } })
    })
    await Promise.race([observed, afterTime(attachLimitMilliseconds)])
  }

  #takeCredit(): boolean {
    const now = performance.now()
    this.#credit = Math.min(maxBurst, this.#credit + ((now - this.#countedAt) / 1_000) * eventsPerSecond)
    this.#countedAt = now
    if (this.#credit < 1) return false
    this.#credit -= 1
    return true
  }
}

function afterTime(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds).unref()
  })
}
