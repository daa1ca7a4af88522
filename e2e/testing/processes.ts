import { readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { kubectl, podOf } from './cluster.ts'
import { clusterEnvironment } from './cluster-environment.ts'
import { machineOf } from './machine-of.ts'

export interface ProcessInfo {
  readonly pid: number
  readonly parent: number
  readonly state: string
  readonly command: string
}

/** Lists every process of this host. */
export async function listProcesses(): Promise<readonly ProcessInfo[]> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.flatMap((pid) => readProcess(Number(pid)) ?? []) // Processes that ended meanwhile are omitted.
}

/** Does not use the thread pool, which takes several times the processor time, and tests look at /proc often. */
function readProcess(pid: number): ProcessInfo | undefined {
  const [stat, command] = [readProcFile(pid, 'stat'), readProcFile(pid, 'cmdline')]
  if (stat === '') return undefined
  const [state = '', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return { pid, parent: Number(parent), state, command: command.replaceAll('\0', ' ').trim() }
}

/** The content of a process's file in /proc. It is empty if the process has ended. */
export function readProcFile(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

/** Chromium's main process in the machine of a session. */
export async function browserProcess(sessionId: string): Promise<number> {
  return (await findBrowser(sessionId)).pid
}

/** The agent in the machine of a session, which is the parent of its Chromium. */
export async function agentProcess(sessionId: string): Promise<number> {
  return (await findBrowser(sessionId)).parent
}

/**
 * Every process in the machine of a session, and those outside that hold it. Those of a pod are visible if its node is
 * on this host.
 */
export async function processesOf(sessionId: string): Promise<readonly ProcessInfo[]> {
  if ('KUBECONFIG' in clusterEnvironment) return processesOfPod(podOf(sessionId))
  const processes = await listProcesses()
  const folder = `/${machineOf(sessionId)}/`
  return withDescendants(processes, ({ command }) => command.includes(folder))
}

/** A node puts all processes of a pod into control groups with its uid in their names. */
async function processesOfPod(pod: string): Promise<readonly ProcessInfo[]> {
  const uid = await kubectl('get', 'pod', pod, '--output=jsonpath={.metadata.uid}')
  const processes = await listProcesses()
  const groups = await Promise.all(processes.map(({ pid }) => readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '')))
  return processes.filter((_process, index) => groups[index]?.includes(uid))
}

function withDescendants(
  processes: readonly ProcessInfo[],
  isFirst: (candidate: ProcessInfo) => boolean,
): readonly ProcessInfo[] {
  const found = new Set(processes.filter(isFirst).map(({ pid }) => pid))
  for (let size = -1; size !== found.size; ) {
    size = found.size
    for (const { pid, parent } of processes) if (found.has(parent)) found.add(pid)
  }
  return processes.filter(({ pid }) => found.has(pid))
}

async function findBrowser(sessionId: string): Promise<ProcessInfo> {
  const processes = await processesOf(sessionId)
  const browser = processes.find(({ command }) => /\/chromium\/chromium /.test(command) && !command.includes('--type='))
  if (!browser) throw new Error(`no browser runs for ${sessionId}`)
  return browser
}

/** Resident memory of the processes in MiB, with shared memory divided among processes (PSS). */
export async function memoryMiB(pids: readonly number[]): Promise<number> {
  const sizes = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '')))
  const kibibytes = sizes.map((text) => Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0))
  return kibibytes.reduce((sum, size) => sum + size, 0) / 1024
}

/** The main process of egress, the parent of the others. */
export async function egressProcess(dataFolder: string): Promise<number> {
  const processes = await listProcesses()
  const egress = processes.find(
    ({ command }) => /^\S*node\S* \S*\/egress\/[^/]+\/main\.mjs/.test(command) && command.includes(dataFolder),
  )
  if (!egress) throw new Error(`egress does not run: ${processes.map(({ command }) => command).join('\n')}`)
  return egress.pid
}

/** The own processes of a berth: the server, egress and the agents, without browsers, displays and the database. */
export async function serviceProcesses(serverPid: number): Promise<readonly number[]> {
  const processes = withDescendants(await listProcesses(), ({ pid }) => pid === serverPid)
  const isOurs = ({ pid, command }: ProcessInfo) =>
    pid === serverPid || /\/opt\/berth\/node|\/egress\/[^/]+\/(main|worker)\.mjs/.test(command)
  return processes.filter(isOurs).map(({ pid }) => pid)
}
