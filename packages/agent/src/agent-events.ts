import type { AgentEvent, AgentState, ServiceName } from '@berth/contract/agent/agent-endpoints.ts'
import { agentContractVersion } from '@berth/contract/agent/agent-protocol.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { Activity } from './activity.ts'

/** Each operation begins and ends an activity: of changes that come faster than this, the last one is told. */
const activityPaceMilliseconds = 250

type Watcher = (event: AgentEvent) => void

/** Where the agent stands, and everybody who follows it. */
export class AgentEvents {
  readonly activity: Activity
  readonly #clock: Clock
  readonly #watchers = new Set<Watcher>()
  #state: AgentState['state'] = 'starting'
  #failure: string | undefined
  #activityToldAt = Number.NEGATIVE_INFINITY
  #activityTimer: NodeJS.Timeout | undefined

  constructor(clock: Clock) {
    this.#clock = clock
    this.activity = new Activity(
      () => clock.now().getTime(),
      () => this.#tellActivity(),
    )
  }

  get state(): AgentState {
    return {
      contract_version: agentContractVersion,
      state: this.#state,
      ...(this.#failure !== undefined && { failure: this.#failure }),
      idle_since: this.activity.idleSince,
    }
  }

  /** The first page has answered; the idle time begins. */
  becomeReady(): void {
    this.#state = 'ready'
    this.activity.restart()
    this.#tellState()
  }

  fail(reason: string): void {
    this.#state = 'failed'
    this.#failure = reason
    this.#tellState()
  }

  reportCrash(service: ServiceName, detail: string): void {
    this.#tell({ event: 'service_crashed', service, detail, at: this.#clock.now().getTime() })
  }

  /** Calls with the current state at once, and with everything that follows. Returns how to stop. */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher)
    watcher({ event: 'state', ...this.state })
    return () => this.#watchers.delete(watcher)
  }

  #tellActivity(): void {
    if (this.#activityTimer) return
    const wait = this.#activityToldAt + activityPaceMilliseconds - this.#clock.now().getTime()
    if (wait <= 0) this.#tellState()
    else this.#activityTimer = setTimeout(() => this.#tellState(), Math.min(wait, activityPaceMilliseconds)).unref()
  }

  #tellState(): void {
    clearTimeout(this.#activityTimer)
    this.#activityTimer = undefined
    this.#activityToldAt = this.#clock.now().getTime()
    this.#tell({ event: 'state', ...this.state })
  }

  #tell(event: AgentEvent): void {
    for (const watcher of this.#watchers) watcher(event)
  }
}
