import { answerCaptcha, type CaptchaOutcome, type CaptchaTask } from '@berth/contract/agent/agent-endpoints.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { SessionMachines } from '../machines/session-machines.ts'
import { type CaptchaSolverConfig, SolverClient } from './solver-client.ts'

/** Limited because each captcha costs money, and a page can show any number. */
const atOncePerSession = 4
const perSessionAndHour = 60
const atOnce = 100
const hourMilliseconds = 60 * 60_000

interface CaptchaSolvingOptions {
  /** When absent, captchas are not solved. */
  readonly config: CaptchaSolverConfig | undefined
  readonly machines: () => Pick<SessionMachines, 'command' | 'has'>
  readonly clock: Clock
  readonly logger: Logger
}

interface SessionWork {
  readonly abort: AbortController
  /** The start times of the tasks in the last hour. */
  begunAt: readonly number[]
  running: number
}

/** Sends the captchas that agents find to the operator's service, and returns the solutions to the agents. */
export class CaptchaSolving {
  readonly #client: SolverClient | undefined
  readonly #options: CaptchaSolvingOptions
  readonly #sessions = new Map<SessionId, SessionWork>()
  #running = 0

  constructor(options: CaptchaSolvingOptions) {
    this.#options = options
    this.#client = options.config && new SolverClient(options.config)
  }

  /** Whether captchas of such a session are solved. */
  solvesFor({ stealth }: { readonly stealth: boolean }): boolean {
    return stealth && this.#client !== undefined
  }

  /** Solves a task, and reports the outcome to the agent of the session. */
  async take(id: SessionId, task: CaptchaTask): Promise<void> {
    const { machines, logger } = this.#options
    // Events of an agent may be read after its end.
    if (!machines().has(id)) return
    const outcome = await this.#solve(id, task)
    if (!outcome) return
    await machines()
      .command(id, answerCaptcha, { task_id: task.task_id, outcome })
      .catch((error: Error) =>
        logger.warn({ sessionId: id, reason: error.message }, 'the solution of a captcha was lost'),
      )
  }

  /** Call when the session has ended. */
  forget(id: SessionId): void {
    this.#sessions.get(id)?.abort.abort()
    this.#sessions.delete(id)
  }

  /** Undefined if the session ends meanwhile. */
  async #solve(id: SessionId, task: CaptchaTask): Promise<CaptchaOutcome | undefined> {
    if (!this.#client) return { status: 'failure', error_code: 'solver_not_configured' }
    const work = this.#workOf(id)
    if (work.begunAt.length >= perSessionAndHour) return { status: 'failure', error_code: 'solver_limit_reached' }
    if (work.running >= atOncePerSession || this.#running >= atOnce) {
      return { status: 'failure', error_code: 'solver_busy' }
    }
    work.begunAt = [...work.begunAt, this.#options.clock.now().getTime()]
    work.running += 1
    this.#running += 1
    try {
      return await this.#client.solve({ ...task, session_id: id }, work.abort.signal)
    } catch (error) {
      if (work.abort.signal.aborted) return undefined
      this.#options.logger.warn({ sessionId: id, reason: reasonOf(error) }, 'the captcha solver failed')
      return { status: 'failure', error_code: 'solver_failed' }
    } finally {
      work.running -= 1
      this.#running -= 1
    }
  }

  #workOf(id: SessionId): SessionWork {
    const work = this.#sessions.get(id) ?? { abort: new AbortController(), begunAt: [], running: 0 }
    this.#sessions.set(id, work)
    const hourAgo = this.#options.clock.now().getTime() - hourMilliseconds
    work.begunAt = work.begunAt.filter((begun) => begun > hourAgo)
    return work
  }
}

/** For a failed fetch, the cause is more informative. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error
  return cause instanceof Error ? cause.message : message
}
