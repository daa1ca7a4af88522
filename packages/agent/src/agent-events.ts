import type { AgentEvent, AgentState, ServiceName } from '@berth/contract/agent/agent-endpoints.ts'
import { agentContractVersion } from '@berth/contract/agent/agent-protocol.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { Activity } from './activity.ts'

type Watcher = (event: AgentEvent) => void

/** Where the agent stands, and everybody who follows it. */
export class AgentEvents {
  readonly activity: Activity
  readonly #clock: Clock
  readonly #watchers = new Set<Watcher>()
  #state: AgentState['state'] = 'starting'
  #failure: string | undefined

  constructor(clock: Clock) {
    this.#clock = clock
    this.activity = new Activity(
      () => clock.now().getTime(),
      () => this.#tell({ event: 'state', ...this.state }),
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
  }

  fail(reason: string): void {
    this.#state = 'failed'
    this.#failure = reason
    this.#tell({ event: 'state', ...this.state })
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

  #tell(event: AgentEvent): void {
    for (const watcher of this.#watchers) watcher(event)
  }
}
