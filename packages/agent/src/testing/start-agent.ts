import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import {
  type AgentConfig,
  type AgentEvent,
  type AgentEventRecord,
  type AgentState,
  type BrowserConfiguration,
  configureAgent,
} from '@berth/contract/agent/agent-endpoints.ts'
import { agentContractVersion } from '@berth/contract/agent/agent-protocol.ts'
import { agentRoutes } from '@berth/contract/agent/agent-routes.ts'
import { eventDataOf } from '@berth/runtime/http/event-stream.ts'
import { inMachineNetwork, writeNetworkFiles } from '@berth/runtime/machine-network/network-command.ts'
import { CdpClient } from './cdp-client.ts'

const agentMain = new URL('../entries/main.ts', import.meta.url).pathname
/** Chromium keeps its sandbox on, which does not work as root: when the tests run as root, the agent runs as nobody. */
const unprivilegedUser = process.getuid?.() === 0 ? 65_534 : undefined

export interface Answer {
  readonly status: number
  readonly body: string
}

/** An agent outside of a machine, and helpers for tests. */
export class StartedAgent {
  readonly process: ChildProcess
  readonly config: AgentConfig
  readonly folder: string
  /** Exit code, or the signal that ended it. */
  readonly exited: Promise<number | string>
  /** Its log output. */
  log = ''
  readonly #clients: CdpClient[] = []

  constructor(child: ChildProcess, config: AgentConfig, folder: string) {
    this.process = child
    this.config = config
    this.folder = folder
    this.exited = once(child, 'close').then(([code, signal]) => (code as number | null) ?? (signal as string))
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      this.log += chunk
    })
  }

  get socketPath(): string {
    return join(this.folder, 'agent.sock')
  }

  async call(method: string, path: string, body?: object): Promise<Answer> {
    const headers = body && { 'content-type': 'application/json' }
    const sent = request({ socketPath: this.socketPath, method, path, agent: false, ...(headers && { headers }) })
    sent.end(body && JSON.stringify(body))
    const [response] = await once(sent, 'response')
    return { status: response.statusCode, body: await text(response) }
  }

  configure(configuration: BrowserConfiguration): Promise<Answer> {
    return this.call(configureAgent.method, configureAgent.path, configuration)
  }

  resize(viewport: AgentConfig['viewport']): Promise<Answer> {
    return this.configure({ viewport })
  }

  /** The messages of a stream; ends with the agent. */
  async *#follow<Told>(path: string): AsyncGenerator<Told> {
    const sent = request({ socketPath: this.socketPath, path, agent: false })
    sent.end()
    const [response] = await once(sent, 'response')
    let unfinished = ''
    try {
      for await (const chunk of response.setEncoding('utf8')) {
        const lines = `${unfinished}${chunk}`.split('\n')
        unfinished = lines.pop() ?? ''
        for (const line of lines) {
          const data = eventDataOf(line)
          if (data !== undefined) yield JSON.parse(data)
        }
      }
    } catch {
      // An agent that has ended sends nothing more.
    } finally {
      sent.destroy()
    }
  }

  states(): AsyncGenerator<AgentState> {
    return this.#follow(agentRoutes.followState.path)
  }

  /** All unacknowledged records, or those after a position. */
  records(after?: number): AsyncGenerator<AgentEventRecord> {
    return this.#follow(`${agentRoutes.followEvents.path}${after === undefined ? '' : `?after=${after}`}`)
  }

  async #until<Told>(told: AsyncGenerator<Told>, fits: (one: Told) => boolean): Promise<readonly Told[]> {
    const seen: Told[] = []
    for await (const one of told) {
      seen.push(one)
      if (fits(one)) return seen
    }
    throw new Error(`The agent ended before that: ${JSON.stringify(seen)}\n${this.log}`)
  }

  /** All states up to and including the first match. */
  statesUntil(fits: (state: AgentState) => boolean): Promise<readonly AgentState[]> {
    return this.#until(this.states(), fits)
  }

  /** All events up to and including the first match. */
  async eventsUntil(fits: (event: AgentEvent) => boolean): Promise<readonly AgentEvent[]> {
    const records = await this.#until(this.records(), (record) => 'event' in record && fits(record.event))
    return records.flatMap((record) => ('event' in record ? [record.event] : []))
  }

  async becomesReady(): Promise<void> {
    await this.statesUntil(({ state }) => state === 'ready')
  }

  async connect(path = '/cdp'): Promise<CdpClient> {
    const client = await CdpClient.open(`ws+unix:${this.socketPath}:${path}`)
    this.#clients.push(client)
    return client
  }

  /** A plain connection to the agent, to send what no websocket library would send. */
  async rawSocket(): Promise<Socket> {
    const socket = connect(this.socketPath)
    await once(socket, 'connect')
    return socket
  }

  /** Processes started by the agent itself, by the name of their program. */
  children(program: string): readonly number[] {
    const { pid } = this.process
    const all = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
    return all.filter((child) => nameOf(child) === program).map(Number)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.terminate()
    if (this.process.exitCode === null && this.process.signalCode === null) this.process.kill('SIGTERM')
    await this.exited
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  }
}

/** Starts the agent as a driver would: with its own network and displays, open files, and a configuration file. */
export async function startAgent(changes: Partial<AgentConfig> = {}): Promise<StartedAgent> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-agent-'))
  for (const name of ['home', 'run', 'displays']) mkdirSync(join(folder, name))
  const config: AgentConfig = {
    contract_version: agentContractVersion,
    headless: true,
    stealth: false,
    gpu: false,
    kiosk_mode: false,
    viewport: { width: 1280, height: 800, refresh_rate: 60 },
    awaits_profile: false,
    awaits_extensions: false,
    home_folder: join(folder, 'home'),
    run_folder: join(folder, 'run'),
    egress_socket: join(folder, 'run', 'egress.sock'),
    chromium_path: '/usr/lib/chromium/chromium',
    ...changes,
  }
  const configPath = join(folder, 'config.json')
  writeFileSync(configPath, JSON.stringify(config))
  if (unprivilegedUser !== undefined) changeOwner(folder, unprivilegedUser)

  const boundPath = join(folder, 'agent.sock.new')
  const listener = createServer().listen(boundPath)
  await once(listener, 'listening')
  chmodSync(boundPath, 0o666)
  const [program = '', ...args] = await inOwnNamespaces(folder, [process.execPath, agentMain, configPath])
  const child = spawn(program, args, {
    // In the order of `inheritedDescriptors`; those between the agent's socket and the network's belong to a driver.
    stdio: ['ignore', 'ignore', 'pipe', descriptorOf(listener), 'ignore', 'ignore', 'ignore'],
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...compileCache() },
  })
  // From here on only the agent accepts. Closing removes the bound path, so the socket is renamed before.
  renameSync(boundPath, join(folder, 'agent.sock'))
  listener.close()
  return new StartedAgent(child, config, folder)
}

/** The agent's user cannot write to the cache of the tests. Without one, each agent compiles its modules again. */
function compileCache(): Readonly<Record<string, string>> {
  const cache = process.env.NODE_COMPILE_CACHE
  if (cache === undefined) return {}
  const folder = join(cache, 'agents')
  mkdirSync(folder, { recursive: true })
  if (unprivilegedUser !== undefined) chownSync(folder, unprivilegedUser, unprivilegedUser)
  return { NODE_COMPILE_CACHE: folder }
}

/** The command with a network like that of a machine and its own folder for displays, as an unprivileged user. */
async function inOwnNamespaces(folder: string, command: readonly string[]): Promise<readonly string[]> {
  const files = await writeNetworkFiles(folder)
  const asUser =
    unprivilegedUser === undefined
      ? ['unshare', '--user', `--map-user=${process.getuid?.()}`, `--map-group=${process.getgid?.()}`, '--']
      : ['setpriv', `--reuid=${unprivilegedUser}`, `--regid=${unprivilegedUser}`, '--clear-groups', '--no-new-privs']
  const newNamespaces = ['--net', '--mount', ...(unprivilegedUser === undefined ? ['--map-root-user'] : [])]
  const withDisplays = ['/bin/sh', '-c', separateDisplays, 'berth-displays', join(folder, 'displays')]
  return ['unshare', ...newNamespaces, '--', ...withDisplays, ...inMachineNetwork(files, [...asUser, ...command])]
}

/**
 * Two X servers may choose the same display at once: each looks for the sockets of others in its own network, and then
 * replaces what it finds in this folder.
 */
const separateDisplays = `
mkdir -p -m 1777 /tmp/.X11-unix && mount --bind "$1" /tmp/.X11-unix || exit
shift
exec "$@"
`

function nameOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    return '' // It has ended since it was listed.
  }
}

function changeOwner(folder: string, user: number): void {
  for (const name of ['.', 'home', 'run', 'displays', 'config.json']) chownSync(join(folder, name), user, user)
}

/** Node has no public API for the descriptor of a listening socket. */
function descriptorOf(listener: object): number {
  return (listener as { _handle: { fd: number } })._handle.fd
}
