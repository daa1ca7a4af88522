import { setTimeout as delay } from 'node:timers/promises'
import { type AgentState, followAgentState } from '@berth/contract/agent/agent-endpoints.ts'
import { agentContractVersion } from '@berth/contract/agent/agent-protocol.ts'
import type { Machine } from '../drivers/driver.ts'
import { EventPace } from './event-pace.ts'
import { followAgent } from './follow-agent.ts'

export interface AgentWatchHandlers {
  /** Called with the first state and each later one. */
  readonly onState: (state: AgentState) => void
  /** Called once, when the machine has gone or its agent no longer answers. Not after `close`. */
  readonly onGone: (reason: string) => void
}

interface AgentWatchOptions {
  /** For so long an agent whose stream has ended may tell no state before its session is given up. */
  readonly patienceMilliseconds?: number
}

const defaultPatienceMilliseconds = 15_000
const shortestPauseMilliseconds = 50
const longestPauseMilliseconds = 1_000

/** What the agent itself says of its end, or cannot be understood in: asking again would not help. */
class AgentFailure extends Error {}

/**
 * Holds the stream of one agent's state: berth never polls a session. The end of a stream says nothing about the machine,
 * so it is opened again; each begins with the agent's state. The machine has gone when its driver says so, or when the
 * agent has told no state for too long.
 */
export class AgentWatch {
  readonly #machine: Machine
  readonly #handlers: AgentWatchHandlers
  readonly #patienceMilliseconds: number
  readonly #abort = new AbortController()
  readonly #ready = Promise.withResolvers<void>()
  readonly #pace = new EventPace()
  #heardAt = performance.now()

  constructor(machine: Machine, handlers: AgentWatchHandlers, options: AgentWatchOptions = {}) {
    this.#machine = machine
    this.#handlers = handlers
    this.#patienceMilliseconds = options.patienceMilliseconds ?? defaultPatienceMilliseconds
    this.#ready.promise.catch(() => {}) // Whoever waits sees the rejection; nobody has to wait.
    void this.#watch()
  }

  /** Resolves when the first page of the browser has answered; rejects when it never will. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  /** Whether the machine has gone. */
  get isOver(): boolean {
    return this.#abort.signal.aborted
  }

  close(): void {
    this.#abort.abort()
    this.#ready.reject(new Error('the session was ended'))
  }

  async #watch(): Promise<void> {
    const reason = await Promise.race([
      this.#followAgainAndAgain().catch((error: Error) => `its agent cannot be heard: ${error.message}`),
      this.#machine.ended.then(() => 'its machine ended'),
    ])
    if (this.isOver) return
    this.#abort.abort()
    this.#ready.reject(new Error(reason))
    this.#handlers.onGone(reason)
  }

  /** Rejects when the agent is given up. */
  async #followAgainAndAgain(): Promise<never> {
    const { signal } = this.#abort
    for (let pause = shortestPauseMilliseconds; ; pause = Math.min(pause * 2, longestPauseMilliseconds)) {
      const openedAt = performance.now()
      const end = await this.#follow().catch((error: Error) => error)
      if (signal.aborted || end instanceof AgentFailure) throw end
      if (performance.now() - this.#heardAt > this.#patienceMilliseconds) throw end
      // One that has lasted was no attempt that failed.
      if (performance.now() - openedAt > longestPauseMilliseconds) pause = shortestPauseMilliseconds
      await delay(pause, undefined, { signal })
    }
  }

  /** Follows one stream to its end, which it returns. A stream that tells no state in time is over too. */
  async #follow(): Promise<Error> {
    const silence = new AbortController()
    const timer = setTimeout(() => silence.abort(), this.#patienceMilliseconds)
    try {
      const signal = AbortSignal.any([this.#abort.signal, silence.signal])
      const following = { signal, pace: this.#pace }
      for await (const state of followAgent(this.#machine, followAgentState, following)) {
        if (this.isOver) break
        clearTimeout(timer)
        this.#takeState(state)
        this.#heardAt = performance.now()
      }
      return new Error('its stream of states ends')
    } finally {
      clearTimeout(timer)
    }
  }

  #takeState(state: AgentState): void {
    if (state.contract_version !== agentContractVersion) {
      throw new AgentFailure(
        `it speaks version ${state.contract_version} of the agent contract, this server ${agentContractVersion}`,
      )
    }
    if (state.state === 'failed') throw new AgentFailure(state.failure ?? 'it failed without a reason')
    if (state.state === 'ready') this.#ready.resolve()
    this.#handlers.onState(state)
  }
}
