import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

/** An app as the framework of the official client registers it. */
export interface RegisteredApp {
  readonly name: string
  getActions(): readonly { readonly name: string }[]
  getAction(name: string): Action | undefined
}

interface Action {
  readonly handler: (context: { readonly invocation_id: string }, payload: unknown) => unknown
}

interface Framework {
  readonly appRegistry?: { getApps(): readonly RegisteredApp[] }
}

const frameworks = ['@onkernel/sdk', '@kernel/sdk']

/**
 * The apps that the code has registered. The app has its own copy of the framework, whose builds for `import` and
 * `require` have a registry each. A build that the app has not loaded is skipped: loading it takes as long as loading
 * the app.
 */
export async function registeredApps(entrypoint: string): Promise<readonly RegisteredApp[]> {
  const require = createRequire(entrypoint)
  const found: RegisteredApp[] = []
  for (const name of frameworks) {
    const path = pathOf(require, name)
    if (path === undefined) continue
    const module = path.replace(/\.js$/, '.mjs')
    const hasModule = module !== path && existsSync(module)
    const builds: Framework[] = []
    if (path in require.cache || !hasModule) builds.push(require(path) as Framework)
    if (hasModule) builds.push((await import(pathToFileURL(module).href)) as Framework)
    for (const { appRegistry } of builds) found.push(...(appRegistry?.getApps() ?? []))
  }
  return [...new Map(found.map((app) => [app.name, app])).values()]
}

function pathOf(require: NodeJS.Require, name: string): string | undefined {
  try {
    return require.resolve(name)
  } catch {
    return undefined
  }
}
