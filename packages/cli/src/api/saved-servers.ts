import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { ApiFailure } from './api-failure.ts'

/** A server that `berth login` has stored. */
export interface SavedServer {
  readonly url: string
  readonly apiKey: string
  readonly project?: string
}

export interface SavedServers {
  /** The default server of commands. */
  readonly current?: string
  readonly servers: Readonly<Record<string, SavedServer>>
}

const path = join(process.env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'berth', 'servers.json')

export async function readSavedServers(): Promise<SavedServers> {
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (text === undefined) return { servers: {} }
  try {
    return JSON.parse(text) as SavedServers
  } catch {
    throw new ApiFailure(`${path} is not JSON: remove it, and log in again`, 'usage')
  }
}

/** Only its owner can read the file, which contains API keys. */
export async function writeSavedServers(saved: SavedServers): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const unfinished = `${path}.${process.pid}`
  await writeFile(unfinished, `${JSON.stringify(saved, null, 2)}\n`, { mode: 0o600 })
  await rename(unfinished, path)
}

export interface ConnectionFlags {
  readonly server?: string
  readonly project?: string
}

/** The server and the API key for a command. */
export interface Connection {
  readonly url: string
  readonly apiKey: string | undefined
  readonly project: string | undefined
}

export const defaultUrl = 'http://127.0.0.1:8080'

/** The server of the flag, else of the environment, else the current one, else one on this host. */
export async function findConnection({ server, project }: ConnectionFlags): Promise<Connection> {
  const { BERTH_URL, BERTH_API_KEY, BERTH_PROJECT } = process.env
  const saved = await readSavedServers()
  const name = server ?? (BERTH_URL ? undefined : saved.current)
  const found = name === undefined ? undefined : saved.servers[name]
  if (name !== undefined && !found) {
    const known = Object.keys(saved.servers).join(', ') || 'none'
    throw new ApiFailure(`no server is stored as ${name} (stored: ${known}; berth login adds one)`, 'usage')
  }
  const own = server === undefined ? BERTH_API_KEY : undefined
  const url = (found?.url ?? (BERTH_URL || defaultUrl)).replace(/\/+$/, '')
  if (!/^https?:\/\//.test(url)) throw new ApiFailure('BERTH_URL must start with http:// or https://', 'usage')
  return {
    url,
    apiKey: own ?? found?.apiKey,
    project: project ?? (server === undefined ? BERTH_PROJECT : undefined) ?? found?.project,
  }
}
