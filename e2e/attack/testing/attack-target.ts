import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pipeline } from 'node:stream'
import Kernel from '@onkernel/sdk'
import { fillFromTemplate, type ReadyMessage } from '../../testing/berth.ts'
import { rememberLog } from '../../testing/machine-of.ts'
import { type Canary, startCanary } from './canary.ts'
import { createNetworks, type Networks } from './networks.ts'

const launcher = join(import.meta.dirname, '../../../berth')
const forwardProgram = new URL('port-forward-program.ts', import.meta.url).pathname

/** A port that canaries serve on every address, inside and outside the host. */
export const canaryPort = 8080
/** The port of STUN servers, over UDP. */
export const stunPort = 3478

/** Values that no machine may ever read. */
export const secrets = {
  BERTH_API_KEY: 'sk_attack_0123456789abcdefghij',
  BERTH_MASTER_KEY: 'the-master-key-that-no-machine-may-see',
  BERTH_TEST_SECRET: 'a-secret-of-the-host-that-no-machine-may-see',
} as const

/** A complete berth on a host with a network of its own, where every forbidden connection reaches a canary. */
export class AttackTarget {
  /** The URL of the API. Sessions use its port on the host's loopback. */
  readonly url: string
  readonly client: Kernel
  readonly pid: number
  /** The API's own port on the loopback of the host. */
  readonly port: number
  readonly dataFolder: string
  readonly host: Canary
  readonly world: Canary
  readonly #open: AsyncDisposableStack

  private constructor(
    parts: Pick<AttackTarget, 'url' | 'pid' | 'port' | 'dataFolder' | 'host' | 'world'>,
    open: AsyncDisposableStack,
  ) {
    this.url = parts.url
    this.pid = parts.pid
    this.port = parts.port
    this.dataFolder = parts.dataFolder
    this.host = parts.host
    this.world = parts.world
    this.client = new Kernel({ apiKey: secrets.BERTH_API_KEY, baseURL: parts.url, maxRetries: 0 })
    this.#open = open
  }

  static async start(): Promise<AttackTarget> {
    await using open = new AsyncDisposableStack()
    const networks = open.use(await createNetworks())
    const host = open.use(await startCanary(networks.inHost, [`tcp:${canaryPort}`, 'tcp:80']))
    const inWorld = [`tcp:${canaryPort}`, 'tcp:80', `udp:${stunPort}`, 'dns:100.127.0.2']
    const world = open.use(await startCanary(networks.inWorld, inWorld))
    const dataFolder = await mkdtemp(join(tmpdir(), 'berth-attack-'))
    open.defer(() => rm(dataFolder, { recursive: true, force: true }))
    await fillFromTemplate(dataFolder)
    const { pid, base_url } = await serve(networks, dataFolder, open)
    const port = Number(new URL(base_url).port)
    const url = await openPortForward(networks, { port, socketPath: join(dataFolder, 'door.sock'), open })
    return new AttackTarget({ url, pid, port, dataFolder, host, world }, open.move())
  }

  /** Clears the reports of the canaries. */
  forget(): void {
    this.host.reached.length = 0
    this.world.reached.length = 0
  }

  /** Ends sessions and the server, and removes everything that was created. */
  async [Symbol.asyncDispose](): Promise<void> {
    const sessions = await Array.fromAsync(this.client.browsers.list())
    await Promise.all(sessions.map(({ session_id }) => this.client.browsers.deleteByID(session_id)))
    await this.#open.disposeAsync()
  }
}

async function serve(networks: Networks, dataFolder: string, open: AsyncDisposableStack): Promise<ReadyMessage> {
  const args = ['serve', '--json', '--port', '0', '--data-dir', dataFolder]
  // Programs that enter a machine from outside do not count as activity, and a machine in standby is not reachable.
  const environment = { ...secrets, BERTH_RESERVE: 'off', BERTH_STANDBY: 'off' }
  const child = start([...networks.inHost, launcher, ...args], environment)
  const log: string[] = []
  rememberLog(log)
  createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', (line) => log.push(line))
  const ready = await readLine(child, '{')
  if (!ready) throw new Error(`berth did not start:\n${log.join('\n')}`)
  const message = JSON.parse(ready) as ReadyMessage
  open.defer(async () => {
    const ended = once(child, 'exit')
    process.kill(message.pid, 'SIGTERM')
    await ended
  })
  return message
}

interface PortForward {
  readonly port: number
  readonly socketPath: string
  readonly open: AsyncDisposableStack
}

/** Forwards a port on this machine's loopback to one on the host's. */
async function openPortForward(networks: Networks, { port, socketPath, open }: PortForward): Promise<string> {
  const inner = start([...networks.inHost, process.execPath, forwardProgram, socketPath, String(port)])
  open.defer(async () => {
    inner.kill()
    await once(inner, 'exit')
  })
  await readLine(inner, 'ready')
  const outer: Server = createServer((client) => {
    const server = connect(socketPath)
    pipeline(client, server, client, () => {}) // Closes both sides together.
  })
  outer.listen(0, '127.0.0.1')
  await once(outer, 'listening')
  open.defer(() => void outer.close())
  return `http://127.0.0.1:${(outer.address() as AddressInfo).port}`
}

function start([program = '', ...args]: readonly string[], environment: NodeJS.ProcessEnv = {}): ChildProcess {
  return spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...environment },
  })
}

/** Returns the first line with this prefix, or undefined when the program ends first. */
async function readLine({ stdout }: ChildProcess, begin: string): Promise<string | undefined> {
  for await (const line of createInterface({ input: stdout as NodeJS.ReadableStream })) {
    if (line.startsWith(begin)) return line
  }
  return undefined
}
