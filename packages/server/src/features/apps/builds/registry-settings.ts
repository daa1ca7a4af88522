import { execFile } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { hostName } from '@berth/contract/egress/machine-protocol.ts'

const limitMilliseconds = 20_000
const loopback = /^(localhost|127(\.\d+){3}|\[::1\])$/

/** Where npm of the operator gets packages from, as variables for npm in a machine. Credentials stay on the host. */
export class RegistrySettings {
  #read: Promise<Readonly<Record<string, string>>> | undefined

  read(): Promise<Readonly<Record<string, string>>> {
    this.#read ??= readFromNpm().catch((error: unknown) => {
      this.#read = undefined
      throw error
    })
    return this.#read
  }
}

async function readFromNpm(): Promise<Readonly<Record<string, string>>> {
  const folder = dirname(fileURLToPath(import.meta.resolve('npm/package.json')))
  const args = [join(folder, 'bin/npm-cli.js'), 'config', 'list', '--json']
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: '/', timeout: limitMilliseconds })
  return registriesIn(JSON.parse(stdout))
}

/** Only the addresses. One on the host itself has another name in a machine. */
export function registriesIn(config: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const registries = Object.entries(config).flatMap(([key, value]) => {
    const url = key === 'registry' || /^@[^:]+:registry$/.test(key) ? URL.parse(String(value)) : null
    if (!url) return []
    if (loopback.test(url.hostname)) url.hostname = hostName
    url.username = ''
    url.password = ''
    return [[`npm_config_${key}`, url.href] as const]
  })
  return Object.fromEntries(registries)
}
