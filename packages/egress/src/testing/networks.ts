import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

const run = promisify(execFile)
/** Nothing listens here in `host`, so lookups of names that are not in the hosts file fail at once. */
const nameServer = '127.0.0.1'
const canaryProgram = new URL('canary.ts', import.meta.url).pathname

/**
 * Two network namespaces that are connected only to each other. Egress runs in `host`, which has addresses of its own.
 * Everything sent elsewhere arrives in `world`, which answers on every address.
 */
export interface Networks extends AsyncDisposable {
  /** The command prefix that runs a command in `host`. */
  readonly inHost: readonly string[]
  readonly inWorld: readonly string[]
}

export interface NetworkOptions {
  /** The hosts file of `host`. */
  readonly names: Readonly<Record<string, readonly string[]>>
  /** Addresses of an interface of `host`. */
  readonly ownAddresses: readonly string[]
  /** Addresses of an interface of `host` without a carrier: Linux answers on them but does not list them. */
  readonly unlistedAddresses: readonly string[]
}

/** Why this computer cannot create network namespaces, or false. */
export function networksProblem(): string | false {
  return process.getuid?.() === 0 ? false : 'making network namespaces takes root'
}

export async function createNetworks({ names, ownAddresses, unlistedAddresses }: NetworkOptions): Promise<Networks> {
  const host = `berth-egress-${process.pid}-host`
  const world = `berth-egress-${process.pid}-world`
  const etc = `/etc/netns/${host}`
  const networks: Networks = {
    inHost: ['ip', 'netns', 'exec', host],
    inWorld: ['ip', 'netns', 'exec', world],
    async [Symbol.asyncDispose]() {
      await Promise.allSettled([host, world].map((name) => run('ip', ['netns', 'del', name])))
      await rm(etc, { recursive: true, force: true })
    },
  }
  try {
    await mkdir(etc, { recursive: true })
    await writeFile(
      `${etc}/hosts`,
      Object.entries(names)
        .flatMap(([name, addresses]) => addresses.map((address) => `${address} ${name}\n`))
        .join(''),
    )
    await writeFile(`${etc}/resolv.conf`, `nameserver ${nameServer}\n`)
    for (const name of [host, world]) {
      await run('ip', ['netns', 'add', name])
      await ip(name, 'link set lo up')
    }
    await ip(host, `link add uplink type veth peer name downlink netns ${world}`)
    await ip(host, 'addr add 100.127.0.1/30 dev uplink', 'addr add 5000::1/64 dev uplink nodad', 'link set uplink up')
    await ip(
      world,
      'addr add 100.127.0.2/30 dev downlink',
      'addr add 5000::2/64 dev downlink nodad',
      'link set downlink up',
    )
    await ip(host, 'route add default via 100.127.0.2', 'route add default via 5000::2')
    // 5000::/16 connects the two namespaces and is not included, because its responses would never leave.
    const everything = ['0.0.0.0/0', '::/16', '64:ff9b::/96', '2000::/3', '4000::/16', 'fc00::/7', 'fec0::/10']
    await ip(world, ...everything.map((range) => `route add local ${range} dev lo`))
    await ip(
      host,
      'link add listed type veth peer name plugged',
      'link set listed up',
      'link set plugged up',
      ...ownAddresses.map((address) => `addr add ${address} dev listed${address.includes(':') ? ' nodad' : ''}`),
    )
    await ip(
      host,
      'link add unlisted type veth peer name unplugged',
      'link set unlisted up',
      ...unlistedAddresses.map((address) => `addr add ${address} dev unlisted`),
    )
    return networks
  } catch (error) {
    await networks[Symbol.asyncDispose]()
    throw error
  }
}

async function ip(namespace: string, ...commands: string[]): Promise<void> {
  for (const command of commands) await run('ip', ['-n', namespace, ...command.split(' ')])
}

/** Servers that report who connected and what was sent. */
export interface Canary extends AsyncDisposable {
  /** `address:port text` for each connection so far, in order. */
  readonly reached: string[]
  /** Resolves when a connection with this text has been reported. All earlier ones have been reported then. */
  untilReached(entry: string): Promise<void>
}

/** Listens on the ports of every address, in the namespace of the command prefix. */
export async function startCanary(wrapper: readonly string[], ports: readonly number[]): Promise<Canary> {
  const [program = '', ...rest] = [...wrapper, process.execPath, canaryProgram, ...ports.map(String)]
  const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })
  await once(lines, 'line')
  const reached: string[] = []
  lines.on('line', (line) => reached.push(line))

  return {
    reached,
    async untilReached(entry) {
      while (!reached.includes(entry)) await once(lines, 'line')
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await once(child, 'exit')
    },
  }
}
