import type { ServerResponse } from 'node:http'
import { Content, EventStream } from './served-operation.ts'

type Outcome = { readonly answer: unknown } | { readonly error: unknown }

/** How long an operation continues without its caller, who may still retry. */
export interface Caller {
  readonly response: ServerResponse
  readonly graceMilliseconds: number
}

/**
 * An operation from its start until nobody waits for it any more. A caller that retries joins it, also shortly after it
 * has ended without a caller.
 */
export class RunningOperation {
  readonly #left = new AbortController()
  readonly #outcome: Promise<Outcome>
  readonly #onEnd: () => void
  #callers = 0
  #timer: NodeJS.Timeout | undefined
  #isTaken = false

  constructor(run: (signal: AbortSignal) => unknown, onEnd: () => void) {
    this.#onEnd = onEnd
    this.#outcome = Promise.try(run, this.#left.signal).then(
      (answer) => ({ answer }),
      (error: unknown) => ({ error }),
    )
  }

  /** Aborts when nobody waits any more. */
  get signal(): AbortSignal {
    return this.#left.signal
  }

  get hasCallers(): boolean {
    return this.#callers > 0
  }

  /** The result for one more caller. A streamed response can be given only once. */
  async answerFor({ response, graceMilliseconds }: Caller): Promise<unknown> {
    clearTimeout(this.#timer)
    this.#callers += 1
    response.once('close', () => {
      this.#callers -= 1
      if (response.writableFinished || this.#isTaken) this.#end()
      else if (this.#callers === 0) this.#endAfter(graceMilliseconds)
    })
    const outcome = await this.#outcome
    if ('error' in outcome) throw outcome.error
    if (isStream(outcome.answer) && !response.destroyed) {
      if (this.#isTaken) throw new Error('the answer was given to another call')
      this.#isTaken = true
    }
    return outcome.answer
  }

  #endAfter(milliseconds: number): void {
    if (milliseconds === 0) this.#end()
    else this.#timer = setTimeout(() => this.#end(), milliseconds)
  }

  #end(): void {
    clearTimeout(this.#timer)
    if (this.#callers > 0 && !this.#isTaken) return // Another caller waits for the same result.
    this.#onEnd()
    this.#left.abort()
  }
}

function isStream(answer: unknown): boolean {
  return answer instanceof EventStream || (answer instanceof Content && !(answer.body instanceof Uint8Array))
}
