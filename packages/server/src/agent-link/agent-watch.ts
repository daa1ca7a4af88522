import { setTimeout as delay } from 'node:timers/promises'
import { type AgentState, followAgentState } from '@berth/contract/agent/agent-endpoints.ts'
import { agentContractVersion } from '@berth/contract/agent/agent-protocol.ts'
import type { Machine } from '../drivers/driver.ts'
import { EventRateLimiter } from './event-rate-limiter.ts'
import { followAgent } from './follow-agent.ts'

export interface AgentWatchHandlers {
  /** Called with the first state and each later one. */
  readonly onState: (state: AgentState) => void
  /** Called once, when the machine has ended or its agent no longer responds. Not called after `close`. */
  readonly onGone: (reason: string) => void
}

interface AgentWatchOptions {
  /** How long an agent may report no state, after its stream ended, before its session is given up. */
  readonly patienceMilliseconds?: number
  /** Until it resolves, the agent cannot respond and receives no requests. */
  readonly begin?: Promise<void>
}

const defaultPatienceMilliseconds = 15_000
const shortestPauseMilliseconds = 50
const longestPauseMilliseconds = 1_000

/** A failure that the agent reports, or an invalid message. Reconnecting would not help. */
class AgentFailure extends Error {}

/**
 * Follows the stream of an agent's state, so that berth never polls a session. The end of a stream does not mean that
 * the machine has ended, so the stream is reopened; each begins with the current state. The machine is gone when its
 * driver says so, or when the agent has sent no state for too long.
 */
export class AgentWatch {
  readonly #machine: Machine
  readonly #handlers: AgentWatchHandlers
  readonly #patienceMilliseconds: number
  readonly #abort = new AbortController()
  readonly #ready = Promise.withResolvers<void>()
  readonly #rateLimiter = new EventRateLimiter()
  #lastStateAt = performance.now()

  constructor(machine: Machine, handlers: AgentWatchHandlers, options: AgentWatchOptions = {}) {
    this.#machine = machine
    this.#handlers = handlers
    this.#patienceMilliseconds = options.patienceMilliseconds ?? defaultPatienceMilliseconds
    this.#ready.promise.catch(() => {}) // Waiting callers see the rejection. There may be none.
    void this.#watch(options.begin)
  }

  /** Resolves when the agent reports that the browser is ready. Rejects when it will not be. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  /** Whether the machine has ended. */
  get isOver(): boolean {
    return this.#abort.signal.aborted
  }

  close(): void {
    this.#abort.abort()
    this.#ready.reject(new Error('the session was ended'))
  }

  async #watch(begin: Promise<void> | undefined): Promise<void> {
    const reason = await Promise.race([
      this.#followWithReconnects(begin).catch((error: Error) => `its agent cannot be heard: ${error.message}`),
      this.#machine.ended.then(() => ['its machine ended', this.#machine.endReason].filter(Boolean).join(': ')),
    ])
    if (this.isOver) return
    this.#abort.abort()
    this.#ready.reject(new Error(reason))
    this.#handlers.onGone(reason)
  }

  /** Rejects when the agent counts as gone. */
  async #followWithReconnects(begin: Promise<void> | undefined): Promise<never> {
    const { signal } = this.#abort
    await begin
    this.#lastStateAt = performance.now()
    for (let pause = shortestPauseMilliseconds; ; pause = Math.min(pause * 2, longestPauseMilliseconds)) {
      const openedAt = performance.now()
      const end = await this.#follow().catch((error: Error) => error)
      if (signal.aborted || end instanceof AgentFailure) throw end
      if (performance.now() - this.#lastStateAt > this.#patienceMilliseconds) throw end
      // A stream that lasted was not a failed attempt.
      if (performance.now() - openedAt > longestPauseMilliseconds) pause = shortestPauseMilliseconds
      await delay(pause, undefined, { signal })
    }
  }

  /** Follows one stream until it ends, and returns the reason. A stream without a state in time counts as ended. */
  async #follow(): Promise<Error> {
    const silence = new AbortController()
    const timer = setTimeout(() => silence.abort(), this.#patienceMilliseconds)
    try {
      const signal = AbortSignal.any([this.#abort.signal, silence.signal])
      const following = { signal, pace: this.#rateLimiter }
      for await (const state of followAgent(this.#machine, followAgentState, following)) {
        if (this.isOver) break
        clearTimeout(timer)
        this.#takeState(state)
        this.#lastStateAt = performance.now()
      }
      return new Error('its stream of states ended')
    } finally {
      clearTimeout(timer)
    }
  }

  #takeState(state: AgentState): void {
    if (state.contract_version !== agentContractVersion) {
      throw new AgentFailure(
        `it uses version ${state.contract_version} of the agent contract, this server ${agentContractVersion}`,
      )
    }
    if (state.state === 'failed') throw new AgentFailure(state.failure ?? 'it failed without a reason')
    if (state.state === 'ready') this.#ready.resolve()
    this.#handlers.onState(state)
  }
}
