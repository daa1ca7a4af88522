import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The name server, which is the canary in the outside namespace. */
const nameServer = '100.127.0.2'

/** Addresses of an interface of the host. The outside namespace has all other addresses. */
export const hostAddresses = {
  loopback: '127.0.0.1',
  lan: '10.1.0.1',
  home: '192.168.7.1',
  public: '45.0.0.1',
  uniqueLocal: 'fd00::1',
} as const

/** The hosts file of berth's host. */
const names: Readonly<Record<string, readonly string[]>> = {
  localhost: ['127.0.0.1', '::1'],
  'public.test': ['45.5.5.5'],
  'loopback.test': ['127.0.0.1'],
  'loopback6.test': ['::1'],
  'lan.test': [hostAddresses.lan, hostAddresses.uniqueLocal],
  'neighbour.test': ['10.9.9.9'],
  'metadata.test': ['169.254.169.254'],
  'mapped.test': ['::ffff:10.1.0.1'],
  'own.test': [hostAddresses.public],
}

/**
 * Two network namespaces that are connected only to each other: `host`, in which berth runs, and `world`, which
 * receives everything that leaves the host. Canaries listen in both, so that every failure of the guard reaches one of
 * them.
 */
export interface Networks extends AsyncDisposable {
  /**
   * The command prefix that runs a command on the host. It keeps the mounts of this machine, including control groups.
   */
  readonly inHost: readonly string[]
  readonly inWorld: readonly string[]
}

/** Why this machine cannot create network namespaces, or false. */
export function networksProblem(): string | false {
  return process.getuid?.() === 0 ? false : 'making network namespaces takes root'
}

export async function createNetworks(): Promise<Networks> {
  const host = `berth-attack-${process.pid}-host`
  const world = `berth-attack-${process.pid}-world`
  const etc = await mkdtemp(join(tmpdir(), 'berth-attack-etc-'))
  const networks: Networks = {
    inHost: [...enter(host), 'unshare', '--mount', '--propagation', 'private', 'sh', '-c', useSettings, 'sh', etc],
    inWorld: enter(world),
    async [Symbol.asyncDispose]() {
      await Promise.allSettled([host, world].map((name) => run('ip', ['netns', 'del', name])))
      await rm(etc, { recursive: true })
    },
  }
  try {
    await writeSettings(etc)
    await connect(host, world)
    return networks
  } catch (error) {
    await networks[Symbol.asyncDispose]()
    throw error
  }
}

/** `ip netns exec` would hide /sys/fs/cgroup, and with it the limits that berth sets for machines. */
function enter(namespace: string): readonly string[] {
  return ['nsenter', `--net=/run/netns/${namespace}`]
}

const settings = ['hosts', 'nsswitch.conf', 'resolv.conf']
const useSettings = `
etc=$1; shift
for name in ${settings.join(' ')}; do mount --bind "$etc/$name" "/etc/$name" || exit; done
exec "$@"`

async function writeSettings(folder: string): Promise<void> {
  const hosts = Object.entries(names).flatMap(([name, addresses]) => addresses.map((address) => `${address} ${name}\n`))
  await writeFile(join(folder, 'hosts'), hosts.join(''))
  await writeFile(join(folder, 'nsswitch.conf'), 'passwd: files\ngroup: files\nhosts: files dns\n')
  await writeFile(join(folder, 'resolv.conf'), `nameserver ${nameServer}\noptions timeout:1 attempts:1\n`)
}

async function connect(host: string, world: string): Promise<void> {
  for (const name of [host, world]) {
    await run('ip', ['netns', 'add', name])
    await ip(name, 'link set lo up')
  }
  await ip(host, `link add uplink type veth peer name downlink netns ${world}`)
  await ip(host, 'addr add 100.127.0.1/30 dev uplink', 'addr add 5000::1/64 dev uplink nodad', 'link set uplink up')
  await ip(
    world,
    `addr add ${nameServer}/30 dev downlink`,
    'addr add 5000::2/64 dev downlink nodad',
    'link set downlink up',
  )
  await ip(host, 'route add default via 100.127.0.2', 'route add default via 5000::2')
  // 5000::/16 connects the two namespaces. Responses to it would never leave.
  const everything = ['0.0.0.0/0', '::/16', '64:ff9b::/96', '2000::/3', '4000::/16', 'fc00::/7']
  await ip(world, ...everything.map((range) => `route add local ${range} dev lo`))
  const { lan, home, public: own, uniqueLocal } = hostAddresses
  await ip(
    host,
    'link add lan type veth peer name plugged',
    'link set lan up',
    'link set plugged up',
    `addr add ${uniqueLocal}/64 dev lan nodad`,
  )
  await ip(host, ...[`${lan}/24`, `${home}/24`, `${own}/32`].map((address) => `addr add ${address} dev lan`))
}

async function ip(namespace: string, ...commands: string[]): Promise<void> {
  for (const command of commands) await run('ip', ['-n', namespace, ...command.split(' ')])
}
