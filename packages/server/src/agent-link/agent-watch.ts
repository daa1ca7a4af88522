import type { AgentEvent, AgentState } from '@berth/contract/agent/agent-endpoints.ts'
import { agentContractVersion } from '@berth/contract/agent/agent-endpoints.ts'
import type { Machine } from '../drivers/driver.ts'
import { followAgent } from './agent-client.ts'

export interface AgentWatchHandlers {
  /** Called with the first state and each later one. */
  readonly onState: (state: AgentState) => void
  readonly onCrash: (event: Extract<AgentEvent, { event: 'service_crashed' }>) => void
  /** Called once, when the machine has gone or its agent no longer speaks. Not after `close`. */
  readonly onGone: (reason: string) => void
}

/** Holds the event stream of one agent: berth never polls a session. */
export class AgentWatch {
  readonly #machine: Machine
  readonly #handlers: AgentWatchHandlers
  readonly #abort = new AbortController()
  readonly #ready = Promise.withResolvers<void>()

  constructor(machine: Machine, handlers: AgentWatchHandlers) {
    this.#machine = machine
    this.#handlers = handlers
    this.#ready.promise.catch(() => {}) // Whoever waits sees the rejection; nobody has to wait.
    void this.#follow()
  }

  /** Resolves when the first page of the browser has answered; rejects when it never will. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  close(): void {
    this.#abort.abort()
    this.#ready.reject(new Error('the session was ended'))
  }

  async #follow(): Promise<void> {
    const reason = await Promise.race([
      this.#readEvents().then(
        () => 'its agent ended',
        (error: Error) => `its agent cannot be heard: ${error.message}`,
      ),
      this.#machine.ended.then(() => 'its machine ended'),
    ])
    if (this.#abort.signal.aborted) return
    this.#abort.abort()
    this.#ready.reject(new Error(reason))
    this.#handlers.onGone(reason)
  }

  async #readEvents(): Promise<void> {
    for await (const event of followAgent(this.#machine.agentSocket, this.#abort.signal)) {
      if (this.#abort.signal.aborted) return
      if (event.event === 'service_crashed') this.#handlers.onCrash(event)
      else this.#takeState(event)
    }
  }

  #takeState(state: AgentState): void {
    if (state.contract_version !== agentContractVersion) {
      throw new Error(
        `it speaks version ${state.contract_version} of the agent contract, this server ${agentContractVersion}`,
      )
    }
    if (state.state === 'failed') throw new Error(state.failure ?? 'it failed without a reason')
    if (state.state === 'ready') this.#ready.resolve()
    this.#handlers.onState(state)
  }
}
