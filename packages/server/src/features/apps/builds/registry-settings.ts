import { execFile } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { LoadingCache } from '@berth/runtime/async/loading-cache.ts'
import { uvPython } from '../../../host-checks/uv.ts'
import { addressInMachine } from '../machines/address-in-machine.ts'
import type { Runtime } from '../machines/app-runtime.ts'

const limitMilliseconds = 20_000

type Variables = Readonly<Record<string, string>>

/**
 * The registries that npm and pip of the operator use, as variables for the package managers in a machine. Credentials
 * stay on the host.
 */
export class RegistrySettings {
  readonly #known = new LoadingCache<Runtime, Variables>({ maxEntries: 2 })

  of(runtime: Runtime): Promise<Variables> {
    return this.#known.get(runtime, runtime === 'python' ? readFromPip : readFromNpm)
  }
}

async function readFromNpm(): Promise<Variables> {
  const folder = dirname(fileURLToPath(import.meta.resolve('npm/package.json')))
  const args = [join(folder, 'bin/npm-cli.js'), 'config', 'list', '--json']
  return registriesIn(JSON.parse(await outputOf(process.execPath, args)))
}

async function readFromPip(): Promise<Variables> {
  return indexesIn(await outputOf(uvPython, ['-m', 'pip', 'config', 'list']))
}

async function outputOf(program: string, args: readonly string[]): Promise<string> {
  return (await promisify(execFile)(program, [...args], { cwd: '/', timeout: limitMilliseconds })).stdout
}

/** Returns only the addresses. */
export function registriesIn(config: Readonly<Record<string, unknown>>): Variables {
  const registries = Object.entries(config).flatMap(([key, value]) => {
    const isRegistry = key === 'registry' || /^@[^:]+:registry$/.test(key)
    const address = isRegistry ? addressInMachine(String(value)) : undefined
    return address === undefined ? [] : [[`npm_config_${key}`, address] as const]
  })
  const [, main] = registries.find(([name]) => name === 'npm_config_registry') ?? []
  return {
    ...Object.fromEntries(registries),
    // Newer versions of yarn ignore npm's settings.
    ...(main && { YARN_NPM_REGISTRY_SERVER: main, YARN_UNSAFE_HTTP_WHITELIST: new URL(main).hostname }),
  }
}

/** Lines such as `global.index-url='https://…'`. Those of the environment take precedence over those of files. */
export function indexesIn(config: string): Variables {
  const settingOf = (name: string) => {
    const lines = [...config.matchAll(new RegExp(`^(\\S+)\\.${name}='(.*)'$`, 'gm'))]
    return (lines.find(([, section]) => section === ':env:') ?? lines.at(-1))?.[2]
  }
  const main = addressInMachine(settingOf('index-url') ?? '')
  const others = (settingOf('extra-index-url') ?? '').split(/\\n|\s+/).flatMap((url) => addressInMachine(url) ?? [])
  return {
    ...(main !== undefined && { UV_DEFAULT_INDEX: main }),
    ...(others.length > 0 && { UV_INDEX: others.join(' ') }),
  }
}
