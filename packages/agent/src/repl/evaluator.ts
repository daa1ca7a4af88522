import type { Runtime } from 'node:inspector'
import { Session } from 'node:inspector/promises'
import { withImports } from './module-globals.ts'

export interface Failure {
  readonly error: string
  readonly stack?: string
}

/**
 * Evaluates code like the console of a browser's developer tools (V8's REPL mode): declarations remain for later code
 * and may be repeated, and top-level `await` works.
 */
export class Evaluator {
  readonly #session = new Session()

  constructor() {
    this.#session.connect()
  }

  /** Undefined if the code succeeded. */
  async run(code: string): Promise<Failure | undefined> {
    const { exceptionDetails } = await this.#evaluate({
      expression: withImports(code),
      replMode: true,
      awaitPromise: true,
      objectGroup: 'call',
    })
    await this.#session.post('Runtime.releaseObjectGroup', { objectGroup: 'call' })
    if (!exceptionDetails) return undefined
    const { text, exception } = exceptionDetails
    const [error = text, ...calls] = String(exception?.description ?? exception?.value ?? text).split('\n    at ')
    const ours = calls.findIndex((call) => /^(Session\.)?post \(node:inspector/.test(call))
    const stack = [error, ...calls.slice(0, ours === -1 ? undefined : ours)].join('\n    at ')
    return { error, ...(exception?.subtype === 'error' && { stack }) }
  }

  /** Types of Node.js describe the response only for the callback form. */
  async #evaluate(
    params: Runtime.EvaluateParameterType & { readonly replMode: true },
  ): Promise<Runtime.EvaluateReturnType> {
    const answer: unknown = await this.#session.post('Runtime.evaluate', params)
    return answer as Runtime.EvaluateReturnType
  }
}
