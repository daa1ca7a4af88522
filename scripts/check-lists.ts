import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import { errorCatalogue } from '@berth/contract/errors.ts'
import { publicEndpoints } from '@berth/contract/index.ts'
import { DocsSearch } from '@berth/mcp/docs-search.ts'
import { endpointsOf } from '@berth/mcp/tool.ts'
import { allTools, withoutTool } from '@berth/mcp/tools/all-tools.ts'
import { fastifyPath } from '@berth/runtime/http/mount.ts'
import { createApp } from '@berth/server/app.ts'
import type { Services } from '@berth/server/services.ts'
import boundaries from '../.dependency-cruiser.js'
import { unlistedPrograms } from './called-programs.ts'

/** Checks that the lists of the project match its files. Prints each fault and how to fix it. */
const root = join(import.meta.dirname, '..')

interface SourceFile {
  readonly path: string
  readonly text: string
}

const files = await readSources(['packages/**/*.ts', 'e2e/**/*.{ts,mjs}', 'scripts/**/*.ts'])
const faults = [
  ...(await unservedEndpoints()),
  ...(await untestedEndpoints(files.filter(({ path }) => path.startsWith('e2e/') || path.endsWith('.test.ts')))),
  ...unusedErrorCodes(files.filter(({ path }) => !path.startsWith('packages/contract/') && !path.endsWith('.test.ts'))),
  // The suite of real clients installs what it needs.
  ...unlistedPrograms(files.filter(({ path }) => !/^(scripts|e2e\/clients)\//.test(path))),
  ...endpointsWithoutTool(),
  ...(await unusedBoundaries(files.map(({ path }) => path))),
]
for (const fault of faults) console.error(fault)
if (faults.length > 0) process.exitCode = 1

async function readSources(patterns: readonly string[]): Promise<readonly SourceFile[]> {
  const paths = await Array.fromAsync(glob(patterns, { cwd: root, exclude: (path) => path.includes('node_modules') }))
  return Promise.all(paths.map(async (path) => ({ path, text: await readFile(join(root, path), 'utf8') })))
}

async function unservedEndpoints(): Promise<string[]> {
  const app = await createApp(unusedServices(), { publicUrl: undefined, metrics: true, isClosing: () => false })
  return publicEndpoints
    .filter(({ method, path }) => !app.hasRoute({ method, url: fastifyPath(path) }))
    .map((endpoint) => `${nameOf(endpoint)} is declared but not served: mount it in the server's app.ts`)
}

/** Each operation needs an MCP tool, or a reason why it has none. */
function endpointsWithoutTool(): string[] {
  const tools = allTools(new DocsSearch(join(root, 'docs')))
  const served = new Set(tools.flatMap(endpointsOf).map(({ operationId }) => operationId))
  const current = publicEndpoints.filter(({ deprecated }) => !deprecated)
  const known = new Set(current.flatMap(({ operationId, tag }) => [operationId, tag]))
  return [
    ...current
      .filter(({ operationId, tag }) => !served.has(operationId) && !withoutTool[operationId] && !withoutTool[tag])
      .map(({ operationId }) => `${operationId} has no tool: add one in packages/mcp, or say why in withoutTool`),
    ...Object.keys(withoutTool)
      .filter((name) => !known.has(name))
      .map((name) => `withoutTool names ${name}, which is no operation and no tag`),
  ]
}

/** Routes are only mounted here and never called, so any value will do. */
function unusedServices(): Services {
  const anything: object = new Proxy(() => anything, {
    // Without this, `await` would never return.
    get: (_target, key) => (key === 'then' ? undefined : anything),
    apply: () => anything,
  })
  return anything as Services
}

/** A test refers to an endpoint by its operation id, by the official client's call, or by its path. */
async function untestedEndpoints(tests: readonly SourceFile[]): Promise<string[]> {
  const calls = await officialCalls()
  const isNamed = (name: RegExp) => tests.some(({ text }) => name.test(text))
  return publicEndpoints
    .filter((endpoint) => {
      const names = [`\\b${endpoint.operationId}\\b`, ...pathsInTests(endpoint)]
      for (const call of calls.get(shapeOf(endpoint)) ?? []) names.push(`\\.${RegExp.escape(call)}\\(`)
      return !isNamed(new RegExp(names.join('|')))
    })
    .map((endpoint) => `${nameOf(endpoint)} is in no test: test it in e2e or beside its route`)
}

/** The path as tests write it: after its method or, if no other endpoint has it, alone. */
function pathsInTests({ method, path, access, ...endpoint }: Endpoint & { agentPath?: string }): string[] {
  const written = (text: string) =>
    text
      .split(/\{\w+\}/)
      .map(RegExp.escape)
      .join('[^/\'"`]+')
  const quote = '[\'"`]'
  const names = [`${quote}${method}${quote}, ${quote}${written(path)}[?$'"\`]`]
  if (access === 'public') names.push(`${quote}${written(path)}${quote}`)
  if (endpoint.agentPath) names.push(`${written(endpoint.agentPath)}[?$'"\`]`)
  return names
}

/** The official client's name of each operation, such as `browsers.retrieve`, by the shape of its request. */
async function officialCalls(): Promise<Map<string, string[]>> {
  const calls = new Map<string, string[]>()
  const folder = join(root, 'node_modules/@onkernel/sdk/resources')
  for await (const path of glob('**/*.mjs', { cwd: folder })) {
    const source = await readFile(join(folder, path), 'utf8')
    let call = ''
    // Each method of the client contains an example of its use, followed by its request.
    for (const match of source.matchAll(/(?<!_)client\.([\w.]+)\(|_client\.(\w+)\((?:path )?['`]([^'`]+)['`]/g)) {
      const [, example, verb = '', target = ''] = match
      if (example) call = example
      else {
        const method = verb === 'getAPIList' ? 'GET' : verb.toUpperCase()
        const shape = shapeOf({ method, path: target.replaceAll('${', '{') })
        calls.set(shape, [...(calls.get(shape) ?? []), call])
      }
    }
  }
  return calls
}

/** Method and path without parameter names, which differ between client and contract. */
function shapeOf({ method, path }: { method: string; path: string }): string {
  return `${method} ${path.replaceAll(/\{[^}]+\}/g, '{}')}`
}

function unusedErrorCodes(sources: readonly SourceFile[]): string[] {
  return Object.keys(errorCatalogue)
    .filter((code) => !sources.some(({ text }) => text.includes(`'${code}'`)))
    .map((code) => `errors.ts: nothing throws ${code}: remove it, or throw it where it belongs`)
}

interface Boundary {
  readonly name: string
  readonly from: PathCondition
  readonly to: PathCondition
}

interface PathCondition {
  readonly path?: string | readonly string[]
  readonly pathNot?: string | readonly string[]
}

/** A pattern that matches nothing has no effect. Usually a file was renamed and its rule was not. */
async function unusedBoundaries(paths: readonly string[]): Promise<string[]> {
  const packages = await Array.fromAsync(glob(['node_modules/*', 'node_modules/@*/*'], { cwd: root }))
  const candidates = [...paths, ...packages.map((path) => `${path}/`)]
  const rules: readonly Boundary[] = boundaries.forbidden
  return rules.flatMap(({ name, from, to }) => {
    const patterns = [from.path, from.pathNot, to.path, to.pathNot].flatMap((pattern) => pattern ?? [])
    return patterns
      .map((pattern) => pattern.replaceAll('$1', '[^/]+'))
      .filter((pattern) => !candidates.some((path) => new RegExp(pattern).test(path)))
      .map((pattern) => `.dependency-cruiser.js: ${pattern} of ${name} matches no file: correct or remove it`)
  })
}

function nameOf({ method, path, operationId }: Endpoint): string {
  return `${operationId} (${method} ${path})`
}
