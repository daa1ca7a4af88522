import { stripTypeScriptTypes } from 'node:module'
import { constants, Script } from 'node:vm'

/** Variables of the code, in the order of the parameters of the compiled function. */
const variables = ['page', 'context', 'browser', 'webmcp', 'require']

type CompiledCode = (...values: unknown[]) => Promise<unknown>

/**
 * Compiles a function body in TypeScript or JavaScript. Line numbers match the caller's code, and imports are resolved
 * from `besideFile`.
 */
export function compileCode(code: string, besideFile: string): CompiledCode {
  const source = withoutTypes(`(async (${variables.join(', ')}) => {\n${code}\n})`)
  const script = new Script(source, {
    filename: besideFile,
    lineOffset: -1,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
  return script.runInThisContext() as CompiledCode
}

function withoutTypes(source: string): string {
  try {
    return stripTypeScriptTypes(source)
  } catch (error) {
    // Also enums and namespaces, which are more than types.
    const { message } = error as Error
    const syntaxError = new SyntaxError(message, { cause: error })
    syntaxError.stack = `SyntaxError: ${message}` // The rest of the stack consists of calls in this program.
    throw syntaxError
  }
}
