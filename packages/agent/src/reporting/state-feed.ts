import type { AgentState } from '@berth/contract/agent/agent-endpoints.ts'
import { agentContractVersion } from '@berth/contract/agent/agent-protocol.ts'
import { Changes } from '@berth/runtime/async/changes.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { Activity } from './activity.ts'

/** Each operation begins and ends an activity: of changes faster than this, only the last is reported. */
const activityPaceMilliseconds = 250

/** The state of the agent. Followers get the newest state, and skip states when they are slow. */
export class StateFeed {
  readonly activity: Activity
  readonly #clock: Clock
  readonly #changes = new Changes()
  #state: AgentState['state'] = 'starting'
  #failure: string | undefined
  /** Increases with each reported state. */
  #version = 0
  #toldAt = Number.NEGATIVE_INFINITY
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

  /** The first page, or a browser that a session waits for, has answered; idle time starts. */
  becomeReady(): void {
    this.#state = 'ready'
    this.activity.restart()
    this.#tell()
  }

  fail(reason: string): void {
    this.#state = 'failed'
    this.#failure = reason
    this.#tell()
  }

  /** The current state immediately, then all changes, until the signal aborts. */
  async *follow(signal: AbortSignal): AsyncGenerator<AgentState> {
    for (let told: number | undefined; !signal.aborted; ) {
      if (told === this.#version) await this.#changes.next(signal)
      else {
        told = this.#version
        yield this.state
      }
    }
  }

  #tellActivity(): void {
    if (this.#activityTimer) return
    const wait = this.#toldAt + activityPaceMilliseconds - this.#clock.now().getTime()
    if (wait <= 0) this.#tell()
    else this.#activityTimer = setTimeout(() => this.#tell(), Math.min(wait, activityPaceMilliseconds)).unref()
  }

  #tell(): void {
    clearTimeout(this.#activityTimer)
    this.#activityTimer = undefined
    this.#toldAt = this.#clock.now().getTime()
    this.#version += 1
    this.#changes.notify()
  }
}
