import { constants } from 'node:fs'
import { readFile, statfs } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { planSizes, type ReserveConfig } from '../features/sessions/reserve/reserve-plan.ts'
import { type CheckTarget, failure, type HostCheck, ok, type Verdict, warning } from './host-check.ts'
import { isAllowed } from './program.ts'
import { missingSystemPackages } from './system-packages.ts'

const mebibyte = 1024 * 1024

export const resourceChecks: readonly HostCheck<[CheckTarget]>[] = [
  { name: 'Memory', run: async () => judgeMemory(process.availableMemory()) },
  { name: 'Reserve', run: async ({ reserve }) => judgeReserve(reserve, process.availableMemory()) },
  { name: '/dev/shm', run: async () => judgeSharedMemory(await freeBytes('/dev/shm')) },
  { name: 'Open files', run: async () => judgeOpenFiles(await readLimit('Max open files')) },
  { name: 'Processes', run: async () => judgeProcesses(await readLimit('Max processes')) },
  { name: 'Data folder', run: async ({ dataFolder }) => judgeDataFolder(dataFolder, await inspectFolder(dataFolder)) },
  { name: 'Port', run: async ({ host, port }) => judgePort(host, port, await tryPort(host, port)) },
  { name: 'Fonts', run: async () => judgeFonts((await missingSystemPackages())?.map(({ name }) => name)) },
]

/** The approximate memory of a headful session. */
const sessionMebibytes = 400

export function judgeMemory(availableBytes: number): Verdict {
  const available = Math.floor(availableBytes / mebibyte)
  const fact = `${available} MiB available, room for about ${Math.floor(available / sessionMebibytes)} sessions`
  if (available < sessionMebibytes) return failure(fact, 'stop other programs, or use a machine with more memory')
  if (available < 4 * sessionMebibytes) return warning(fact, 'stop other programs, or use a machine with more memory')
  return ok(fact)
}

/** For the machines that are started in advance. The metrics of a running server contain more. */
export function judgeReserve(config: ReserveConfig, freeBytes: number): Verdict {
  if (config === 'off') return ok('off: each session waits for the start of its browser')
  const sizes = Object.entries(planSizes(config, { creates: [], nowMilliseconds: 0, freeBytes }))
  const kept = sizes.map(([kind, count]) => `${count} ${kind}`).join(', ')
  if (kept !== '') return ok(`${kept}${config === 'auto' ? ', and more when more are created' : ''}`)
  return ok('none, since less than 4 GiB of memory are available: each session waits for the start of its browser')
}

/** PostgreSQL keeps its shared memory there. Each session has its own. */
export function judgeSharedMemory(bytes: number | undefined): Verdict {
  if (bytes === undefined) return failure('/dev/shm is missing', 'mount -t tmpfs tmpfs /dev/shm')
  const fact = `${Math.floor(bytes / mebibyte)} MiB free`
  if (bytes < 32 * mebibyte) return warning(fact, 'mount -o remount,size=256M /dev/shm')
  return ok(fact)
}

/** A session takes about 40 file descriptors of the server, and each client a few more. */
export function judgeOpenFiles(limit: number): Verdict {
  if (limit < 1024) return failure(`at most ${limit}`, 'ulimit -n 65536')
  if (limit < 8192) return warning(`at most ${limit}`, 'ulimit -n 65536')
  return ok(`at most ${limit}`)
}

/** Threads count too, and a session has about 200. */
export function judgeProcesses(limit: number): Verdict {
  if (limit < 1024) return failure(`at most ${limit}`, 'ulimit -u 65536')
  if (limit < 8192) return warning(`at most ${limit}`, 'ulimit -u 65536')
  return ok(`at most ${limit}`)
}

/** Reads the hard limit, to which Node.js raises its own. `Infinity` when there is none. */
async function readLimit(name: string): Promise<number> {
  return parseLimit(await readFile('/proc/self/limits', 'utf8'), name)
}

export function parseLimit(limits: string, name: string): number {
  const line = limits.split('\n').find((candidate) => candidate.startsWith(name)) ?? ''
  const hard = line.slice(name.length).trim().split(/\s+/)[1]
  return hard === 'unlimited' || hard === undefined ? Number.POSITIVE_INFINITY : Number(hard)
}

export interface FolderFacts {
  /** The folder, or its nearest existing parent. */
  readonly nearest: string
  readonly isWritable: boolean
  readonly freeBytes: number
}

async function inspectFolder(folder: string): Promise<FolderFacts> {
  let nearest = folder
  while (!(await isAllowed(nearest, constants.F_OK)) && nearest !== dirname(nearest)) nearest = dirname(nearest)
  return {
    nearest,
    isWritable: await isAllowed(nearest, constants.W_OK | constants.X_OK),
    freeBytes: (await freeBytes(nearest)) ?? 0,
  }
}

async function freeBytes(path: string): Promise<number | undefined> {
  try {
    const { bavail, bsize } = await statfs(path)
    return bavail * bsize
  } catch {
    return undefined
  }
}

export function judgeDataFolder(folder: string, { nearest, isWritable, freeBytes }: FolderFacts): Verdict {
  const cure = 'name another folder with --data-dir'
  if (!isWritable) return failure(`${nearest} cannot be written`, cure)
  const free = Math.floor(freeBytes / mebibyte)
  const fact = `${folder}, ${free} MiB free`
  if (free < 256) return failure(fact, `free some space, or ${cure}`)
  if (free < 2048) return warning(fact, `free some space, or ${cure}`)
  return ok(fact)
}

/** `free`, `berth` when a berth server responds, or the code of the system error. */
type PortState = 'free' | 'berth' | (string & {})

async function tryPort(host: string, port: number): Promise<PortState> {
  const refusal = await new Promise<string | undefined>((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen(port, host, () => server.close(() => resolve(undefined)))
  })
  if (refusal === undefined) return 'free'
  return refusal === 'EADDRINUSE' && (await isBerth(host, port)) ? 'berth' : refusal
}

async function isBerth(host: string, port: number): Promise<boolean> {
  const name = host.includes(':') ? `[${host}]` : host
  try {
    const answer = await fetch(`http://${name}:${port}/health`, { signal: AbortSignal.timeout(5000) })
    const health = (await answer.json()) as Record<string, unknown>
    return 'egress' in health && 'driver' in health
  } catch {
    return false
  }
}

export function judgePort(host: string, port: number, state: PortState): Verdict {
  const place = `port ${port} of ${host}`
  switch (state) {
    case 'free':
      return ok(port === 0 ? 'any free one' : `${place} is free`)
    case 'berth':
      return ok(`${place} is used by a running berth`)
    case 'EADDRINUSE':
      return failure(`${place} is in use`, './berth serve --port 0')
    case 'EACCES':
      return failure(`${place} is for root only`, './berth serve --port 8080')
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return failure(`${host} is not an address of this machine`, './berth serve --host 127.0.0.1')
    default:
      return failure(`${place} cannot be opened: ${state}`, './berth serve --port 0')
  }
}

/** `missing` are Debian packages. Undefined on a system without dpkg. */
export function judgeFonts(missing: readonly string[] | undefined): Verdict {
  if (missing === undefined) return ok('not known on this system')
  const fonts = missing.filter((name) => name.startsWith('fonts-'))
  if (fonts.length === 0) return ok('for all scripts and emoji')
  return warning(
    `${fonts.join(', ')} missing: pages show boxes or wrong widths`,
    `apt-get install -y --no-install-recommends ${fonts.join(' ')}`,
  )
}
