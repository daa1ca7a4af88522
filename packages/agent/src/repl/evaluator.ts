import type { Runtime } from 'node:inspector'
import { Session } from 'node:inspector/promises'
import { withImports } from './module-globals.ts'

export interface Failure {
  readonly error: string
  readonly stack?: string
}

/**
 * Evaluates code as a developer's console does (V8's REPL mode): what it declares stays for the next piece, may be
 * declared anew, and `await` stands at the top.
 */
export class Evaluator {
  readonly #session = new Session()

  constructor() {
    this.#session.connect()
  }

  /** Undefined when the code has ended well. */
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

  /** The types of Node.js know of the answer only where it comes by callback. */
  async #evaluate(
    params: Runtime.EvaluateParameterType & { readonly replMode: true },
  ): Promise<Runtime.EvaluateReturnType> {
    const answer: unknown = await this.#session.post('Runtime.evaluate', params)
    return answer as Runtime.EvaluateReturnType
  }
}
