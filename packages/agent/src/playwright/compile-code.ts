import { stripTypeScriptTypes } from 'node:module'
import { constants, Script } from 'node:vm'

/** What code finds by name, in the order of the arguments that `compileCode`'s function takes. */
const variables = ['page', 'context', 'browser', 'webmcp', 'require']

type CompiledCode = (...values: unknown[]) => Promise<unknown>

/**
 * Makes a function of the body of one, in TypeScript or JavaScript. Lines are counted as the caller wrote them, and
 * imports are looked for where `besideFile` lies.
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
    // Enums and namespaces come here too: they are more than types.
    const { message } = error as Error
    const syntaxError = new SyntaxError(message, { cause: error })
    syntaxError.stack = `SyntaxError: ${message}` // The rest would be the calls in here.
    throw syntaxError
  }
}
