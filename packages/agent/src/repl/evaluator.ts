import type { Runtime } from 'node:inspector'
import { Session } from 'node:inspector/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { constants, Script } from 'node:vm'
// V8 has no hook for import() in what an inspector evaluates, and to find it needs more than a pattern.
import { parse } from 'es-module-lexer/js'

export interface Failure {
  readonly error: string
  readonly stack?: string
}

const importName = '__import'

/**
 * Evaluates code as a developer's console does (V8's REPL mode): what it declares stays for the next piece, may be
 * declared anew, and `await` stands at the top.
 */
export class Evaluator {
  readonly #session = new Session()

  constructor(homeFolder: string, programFolder: string) {
    this.#session.connect()
    const importers = [homeFolder, programFolder].map(importerIn)
    define(importName, (specifier: string, options?: object) => importFrom(importers, specifier, options))
    define('require', createRequire(join(homeFolder, 'repl.js')))
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

/** Globals that code may declare anew. */
export function define(name: string, value: unknown): void {
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true, enumerable: false })
}

function withImports(code: string): string {
  let result = code
  for (const { importStart } of dynamicImports(code).reverse()) {
    result = `${result.slice(0, importStart)}${importName}${result.slice(importStart + 'import'.length)}`
  }
  return result
}

function dynamicImports(code: string): { readonly importStart: number }[] {
  try {
    return parse(code)[0].filter(({ type }) => type === 'dynamic')
  } catch {
    return [] // V8 will say better what is wrong.
  }
}

type Importer = (specifier: string, options?: object) => Promise<unknown>

function importerIn(folder: string): Importer {
  const script = new Script('(specifier, options) => import(specifier, options)', {
    filename: join(folder, 'repl.js'),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
  return script.runInThisContext() as Importer
}

/** From where callers have their files, and then from where the agent has its packages. */
async function importFrom([first, second]: readonly Importer[], specifier: string, options?: object): Promise<unknown> {
  try {
    return await first?.(specifier, options)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND' || /^[./]|^\w+:/.test(specifier)) throw error
    return second?.(specifier, options)
  }
}
