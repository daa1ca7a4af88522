import { randomUUID } from 'node:crypto'
import type { CaptchaOutcome, CaptchaTask } from '@berth/contract/agent/agent-endpoints.ts'
import type { EventLog } from '../reporting/event-log.ts'

/** For a server that does not respond any more. It has a shorter limit itself. */
const answerLimitMilliseconds = 150_000
const maxTasks = 100

/** Challenges that were reported to the server and wait for its answer. */
export class CaptchaTasks {
  readonly #events: EventLog
  readonly #waiting = new Map<string, (outcome: CaptchaOutcome) => void>()

  constructor(events: EventLog) {
    this.#events = events
  }

  newId(): string {
    return randomUUID()
  }

  /** Asks the server to solve this challenge. */
  async solve(task: CaptchaTask): Promise<CaptchaOutcome> {
    if (this.#waiting.size >= maxTasks) return { status: 'failure', error_code: 'solver_busy' }
    const { promise, resolve } = Promise.withResolvers<CaptchaOutcome>()
    this.#waiting.set(task.task_id, resolve)
    const timer = setTimeout(resolve, answerLimitMilliseconds, { status: 'timeout' }).unref()
    this.#events.report({ event: 'captcha_found', ...task })
    const outcome = await promise
    clearTimeout(timer)
    this.#waiting.delete(task.task_id)
    return outcome
  }

  answer(taskId: string, outcome: CaptchaOutcome): void {
    this.#waiting.get(taskId)?.(outcome)
  }
}
