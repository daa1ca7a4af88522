import { createHash } from 'node:crypto'
import { type Dirent, readdirSync } from 'node:fs'
import { lstat, readdir, readFile, readlink, realpath } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { machineOf } from '../../testing/machine-of.ts'
import { listProcesses, type ProcessInfo, readProcFile } from '../../testing/processes.ts'
import { rounds } from './deep.ts'

/**
 * All resources of this host that one berth holds, by kind, under names that survive a restart. Read from the kernel
 * and the disk, not from berth's own records. Other berth servers on the host are excluded.
 */
export type Holdings = Readonly<Record<HoldingKind, readonly string[]>>

type HoldingKind =
  | 'processes'
  | 'zombies'
  | 'namespaces'
  | 'unix sockets'
  | 'mounts'
  | 'control groups'
  | 'folders'
  | 'users'
  | 'shared memory'
  | 'files of the server'
  | 'files of egress'
  | 'database connections'

const namespaceKinds = ['net', 'mnt', 'pid', 'ipc', 'uts', 'user', 'cgroup']
/** The server's pool keeps idle connections for ten seconds, which only the deep form waits for. */
const pooledConnections = rounds({ short: 20, deep: 2 })
const claimsFolder = '/run/berth/users'

export interface BerthProcesses {
  readonly server: readonly ProcessInfo[]
  readonly egress: readonly ProcessInfo[]
  /** The egress processes that serve machines. Their number never decreases. */
  readonly egressWorkers: readonly ProcessInfo[]
  readonly postgres: readonly ProcessInfo[]
  /** The processes of sessions: sandboxes, agents, displays and browsers. */
  readonly machines: readonly ProcessInfo[]
}

/** One berth, as seen from the host. */
export class HostView {
  readonly dataFolder: string
  readonly runtimeFolder: string
  readonly #hasOwnDatabase: boolean

  private constructor(dataFolder: string, runtimeFolder: string, hasOwnDatabase: boolean) {
    this.dataFolder = dataFolder
    this.runtimeFolder = runtimeFolder
    this.#hasOwnDatabase = hasOwnDatabase
  }

  /** The sockets of a server whose database is elsewhere are not compared: the number of connections varies. */
  static async of(dataFolder: string, { hasOwnDatabase = true } = {}): Promise<HostView> {
    const data = await realpath(dataFolder)
    const name = createHash('sha256').update(data).digest('hex').slice(0, 8)
    const uid = process.geteuid?.()
    const base = uid === 0 ? '/run/berth' : `/tmp/berth-${uid}`
    return new HostView(data, join(base, name), hasOwnDatabase)
  }

  async holdings(): Promise<Holdings> {
    const processes = await this.processes()
    const { server, egress, egressWorkers, postgres, machines } = processes
    const connections = postgres.filter(({ command }) => command.includes('[local]')).map(() => 'connection')
    const own = [...server, ...egress, ...egressWorkers, ...postgres, ...machines]
    return {
      processes: [
        ...server.map(() => 'server'),
        ...egress.map(() => 'egress'),
        ...machines.map(({ command }) => `in a machine: ${command.slice(0, 120)}`),
      ].toSorted(),
      zombies: await zombiesBelow(own),
      namespaces: await namespacesOf(machines),
      'unix sockets': await this.#sockets(),
      mounts: await this.#mounts(),
      'control groups': await this.controlGroups(),
      folders: await this.#folders(),
      users: await this.#users(),
      'shared memory': await sharedMemory(),
      'files of the server': without(
        await filesOf(server),
        'socket',
        this.#hasOwnDatabase ? connections.length : Number.POSITIVE_INFINITY,
      ),
      'files of egress': without(await filesOf(egress), 'socket', egressWorkers.length),
      'database connections': connections,
    }
  }

  /** Waits until nothing new is held. Returns what is left at the time limit. */
  async findLeft(before: Holdings, limitSeconds: number): Promise<readonly string[]> {
    const deadline = performance.now() + limitSeconds * 1000
    for (;;) {
      const left = more(before, await this.holdings())
      if (left.length === 0 || performance.now() > deadline) return left
      await delay(200)
    }
  }

  async processes(): Promise<BerthProcesses> {
    const all = await listProcesses()
    const marks = all.map(({ pid }) => this.#isMarked(pid))
    const isMarked = ({ command }: ProcessInfo, index: number) => marks[index] || this.#isMentionedIn(command)
    // Without root, the children of PostgreSQL have no mounts of their own, and their command lines name no folder.
    const parents = new Set(all.filter(isMarked).flatMap(({ pid, command }) => (isPostgres(command) ? pid : [])))
    const own = all.filter(
      (found, index) => found.state !== 'Z' && (isMarked(found, index) || parents.has(found.parent)),
    )
    const inMachine = own.map(({ pid }) => this.#isInMachine(pid))
    const others = own.filter((_process, index) => !inMachine[index])
    const isServer = ({ command }: ProcessInfo) => /\bserve\b/.test(command) && command.includes(this.dataFolder)
    const ofEgress = (program: string) => (candidate: ProcessInfo) =>
      new RegExp(`/egress/[^/]+/${program}\\.mjs`).test(candidate.command) &&
      !candidate.command.includes('bwrap') &&
      !isServer(candidate)
    return {
      server: others.filter(isServer),
      egress: others.filter(ofEgress('main')),
      egressWorkers: others.filter(ofEgress('worker')),
      postgres: others.filter(({ command }) => isPostgres(command)),
      machines: own.filter((candidate, index) => inMachine[index] || this.#buildsMachine(candidate)),
    }
  }

  /** The processes of one session, or machine. */
  async processesOf(id: string): Promise<readonly ProcessInfo[]> {
    const machineId = machineOf(id)
    const { machines } = await this.processes()
    return machines.filter(({ pid, command }) => {
      const [mounts, groups] = [readProcFile(pid, 'mountinfo'), readProcFile(pid, 'cgroup')]
      return command.includes(machineId) || groups.includes(machineId) || inOtherView(mounts, machineId)
    })
  }

  /** The control group folders of the machines, in every hierarchy. */
  async controlGroups(): Promise<readonly string[]> {
    return foldersBelow('/sys/fs/cgroup').filter((path) => basename(path).startsWith(this.#groupPrefix))
  }

  get #groupPrefix(): string {
    return `berth-${basename(this.runtimeFolder)}-`
  }

  #isMentionedIn(text: string): boolean {
    return [this.dataFolder, this.runtimeFolder].some((path) => text.includes(path))
  }

  #buildsMachine({ command }: ProcessInfo): boolean {
    return command.includes(join(this.runtimeFolder, 'm/')) && /bwrap|unshare|berth-machine/.test(command)
  }

  /**
   * A process that changed its command line or its root, as Chromium's processes do, still has our mounts and control
   * groups.
   */
  #isMarked(pid: number): boolean {
    const [mounts, groups] = [readProcFile(pid, 'mountinfo'), readProcFile(pid, 'cgroup')]
    const names = [basename(this.dataFolder), basename(this.runtimeFolder)]
    return (
      groups.includes(this.#groupPrefix) || (pid !== process.pid && names.some((name) => inOtherView(mounts, name)))
    )
  }

  #isInMachine(pid: number): boolean {
    const [mounts, groups] = [readProcFile(pid, 'mountinfo'), readProcFile(pid, 'cgroup')]
    return groups.includes(this.#groupPrefix) || inOtherView(mounts, `${basename(this.dataFolder)}/machines/`)
  }

  async #sockets(): Promise<readonly string[]> {
    const lines = (await readFile('/proc/net/unix', 'utf8')).split('\n')
    const paths = lines.map((line) => line.trim().split(/\s+/)[7] ?? '')
    // Each connection to a socket is a line with the same path. The number of database connections varies.
    const isCounted = (path: string) => this.#isMentionedIn(path) && !path.includes('/postgres/')
    return paths.filter(isCounted).toSorted()
  }

  async #mounts(): Promise<readonly string[]> {
    const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n')
    return lines
      .map((line) => line.split(' ')[4] ?? '')
      .filter((path) => path !== this.dataFolder && this.#isMentionedIn(path))
  }

  async #folders(): Promise<readonly string[]> {
    const folders = [join(this.dataFolder, 'machines'), join(this.runtimeFolder, 'm')]
    const names = await Promise.all(
      folders.map(async (folder) => (await list(folder)).map((name) => join(folder, name))),
    )
    return names.flat().toSorted()
  }

  async #users(): Promise<readonly string[]> {
    const names = await list(claimsFolder)
    const owners = await Promise.all(names.map((name) => readlink(join(claimsFolder, name)).catch(() => '')))
    return owners.filter((owner) => owner.startsWith(this.runtimeFolder))
  }
}

/** Returns what is held now and was not before, as readable lines. */
function more(before: Holdings, now: Holdings): readonly string[] {
  return Object.entries(now).flatMap(([kind, entries]) => {
    const unmatched = [...before[kind as HoldingKind]]
    const fresh = entries.filter((entry) => {
      const index = unmatched.indexOf(entry)
      if (index === -1) return true
      unmatched.splice(index, 1)
      return false
    })
    // Descriptors and connections are replaced all the time, so only their number counts.
    const isCounted = kind.startsWith('files') || kind === 'database connections'
    const allowed = before[kind as HoldingKind].length + (kind === 'database connections' ? pooledConnections : 0)
    const excess = entries.length - allowed
    return isCounted
      ? fresh.slice(0, Math.max(0, excess)).map((entry) => `${kind}: ${entry}`)
      : fresh.map((entry) => `${kind}: ${entry}`)
  })
}

async function zombiesBelow(parents: readonly ProcessInfo[]): Promise<readonly string[]> {
  const pids = new Set(parents.map(({ pid }) => pid))
  const zombies = (await listProcesses()).filter(({ state, parent }) => state === 'Z' && pids.has(parent))
  return zombies.map(({ pid, parent }) => `${pid}, a child of ${parent}`)
}

async function namespacesOf(processes: readonly ProcessInfo[]): Promise<readonly string[]> {
  const links = processes.flatMap(({ pid }) =>
    namespaceKinds.map((kind) => readlink(`/proc/${pid}/ns/${kind}`).catch(() => '')),
  )
  return [...new Set(await Promise.all(links))].filter(Boolean)
}

async function filesOf(processes: readonly ProcessInfo[]): Promise<readonly string[]> {
  const files = processes.map(async ({ pid }) => {
    const numbers = await list(`/proc/${pid}/fd`)
    return Promise.all(numbers.map((number) => readlink(`/proc/${pid}/fd/${number}`).catch(() => '')))
  })
  return (await Promise.all(files)).flat().filter(Boolean).map(withoutNumbers).toSorted()
}

/** Removes this many entries of one name: the server's database sockets are counted separately. */
function without(entries: readonly string[], name: string, count: number): readonly string[] {
  let left = count
  return entries.filter((entry) => entry !== name || left-- <= 0)
}

/** Those of root belong to the host. Each machine has its own shared memory, which disappears with it. */
async function sharedMemory(): Promise<readonly string[]> {
  const names = await list('/dev/shm')
  const owners = await Promise.all(
    names.map(async (name) => (await lstat(join('/dev/shm', name)).catch(() => undefined))?.uid),
  )
  return names.filter((_name, index) => (owners[index] ?? 0) >= 1_900_000_000)
}

/** A mount shows its path within its file system. A mount of the whole data folder belongs to the test. */
function isPostgres(command: string): boolean {
  return /^postgres:|\/postgres /.test(command)
}

function inOtherView(mountinfo: string, name: string): boolean {
  // Most processes have no such mount, and mounts are many.
  return mountinfo.includes(name) && mountinfo.split('\n').some((line) => line.split(' ')[3]?.includes(name))
}

function withoutNumbers(link: string): string {
  return link.replace(/:\[\d+\]$/, '')
}

/** Synchronous, and without files, for the sake of the processor: a control group has dozens of files. */
function foldersBelow(folder: string): readonly string[] {
  let entries: readonly Dirent[] = []
  try {
    entries = readdirSync(folder, { withFileTypes: true })
  } catch {
    // It has been removed meanwhile.
  }
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name))
  return folders.flatMap((path) => [path, ...foldersBelow(path)])
}

function list(folder: string): Promise<readonly string[]> {
  return readdir(folder).catch(() => [])
}
