import type { CaptchaOutcome, CaptchaTask } from '@berth/contract/agent/agent-endpoints.ts'
import { z } from 'zod'
import { readText } from '../../../outbound/read-text.ts'

export interface CaptchaSolverConfig {
  readonly url: string
  readonly key: string | undefined
  readonly limitMilliseconds: number
}

const maxAnswerBytes = 64 * 1024
const maxTokenLength = 16 * 1024

const Answer = z.object({ token: z.string().min(1).max(maxTokenLength) })
const Refusal = z.object({ error_code: z.string().regex(/^[a-z0-9_]{1,64}$/) })

/** The operator's service that solves captchas. docs/captchas.md describes its API. */
export class SolverClient {
  readonly #config: CaptchaSolverConfig

  constructor(config: CaptchaSolverConfig) {
    this.#config = config
  }

  /** Rejects if the service cannot be reached, or when the signal aborts. */
  async solve(task: CaptchaTask & { readonly session_id: string }, signal: AbortSignal): Promise<CaptchaOutcome> {
    const { url, key, limitMilliseconds } = this.#config
    const limit = AbortSignal.timeout(limitMilliseconds)
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(key !== undefined && { authorization: `Bearer ${key}` }) },
        body: JSON.stringify(task),
        redirect: 'error',
        signal: AbortSignal.any([signal, limit]),
      })
      const text = await readText(response, maxAnswerBytes, 'the service')
      if (response.status !== 200) return { status: 'failure', error_code: errorCodeIn(text) }
      return { status: 'solved', token: Answer.parse(JSON.parse(text)).token }
    } catch (error) {
      if (limit.aborted && !signal.aborted) return { status: 'timeout' }
      throw error
    }
  }
}

function errorCodeIn(text: string): string {
  try {
    return Refusal.parse(JSON.parse(text)).error_code
  } catch {
    return 'solver_refused'
  }
}
