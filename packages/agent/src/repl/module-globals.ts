import { createRequire } from 'node:module'
import { join } from 'node:path'
import { constants, Script } from 'node:vm'
// V8 has no hook for import() in evaluated code, and finding it needs more than a regular expression.
import { parse } from 'es-module-lexer/js'

const importName = '__import'

/** Globals that code may declare again. */
export function define(name: string, value: unknown): void {
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true, enumerable: false })
}

/** `require`, and the function that replaces `import()` in code processed by `withImports`. */
export function defineModuleGlobals(homeFolder: string, programFolder: string): void {
  const importers = [homeFolder, programFolder].map(importerIn)
  define(importName, (specifier: string, options?: object) => importFrom(importers, specifier, options))
  define('require', createRequire(join(homeFolder, 'repl.js')))
}

/** The code with `import()` replaced by calls of ours; everything else keeps its position. */
export function withImports(code: string): string {
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
    return [] // V8 reports a better syntax error.
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

/** Resolves from the callers' files first, then from the agent's packages. */
async function importFrom([first, second]: readonly Importer[], specifier: string, options?: object): Promise<unknown> {
  try {
    return await first?.(specifier, options)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND' || /^[./]|^\w+:/.test(specifier)) throw error
    return second?.(specifier, options)
  }
}
