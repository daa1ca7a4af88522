import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { EgressPolicy } from '@berth/contract/egress/egress-endpoints.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import { directly } from './started-egress.ts'
import { TestMachine, textOf } from './test-machine.ts'

const main = new URL('../main.ts', import.meta.url).pathname

export interface EgressProcess extends AsyncDisposable {
  readonly child: ChildProcess
  readonly folder: string
  readonly controlSocket: string
  /** The log so far. */
  log(): string
  /** Calls the control API. Rejects unless the call succeeds. */
  control(method: string, path: string, body?: unknown): Promise<string>
  setPolicy(policy: EgressPolicy): Promise<void>
  /** Serves a machine. */
  serve(machineId: string, settings?: EgressSettings): Promise<TestMachine>
  /** The worker processes, including the spare one. */
  workers(): Promise<readonly number[]>
}

interface Options {
  /** A command that runs the command after it. */
  readonly wrapper?: readonly string[]
  readonly workers?: number
}

/** Starts the real daemon. Resolves when it is ready. */
export async function startEgressProcess({ wrapper = [], workers }: Options = {}): Promise<EgressProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-egress-'))
  const controlSocket = join(folder, 'control.sock')
  const options = ['--control-socket', controlSocket, '--log-level', 'debug']
  if (workers !== undefined) options.push('--workers', String(workers))
  const [program = '', ...rest] = [...wrapper, process.execPath, main, ...options]
  const child = spawn(program, rest, { stdio: ['ignore', 'ignore', 'pipe'] })
  const lines: string[] = []
  const output = createInterface({ input: child.stderr })
  await new Promise<void>((resolve, reject) => {
    output.on('line', (line) => {
      lines.push(line)
      if (line.includes('egress is ready')) resolve()
    })
    output.once('close', () => reject(new Error(`egress has ended: ${lines.join('\n')}`)))
  })

  const control = (method: string, path: string, body?: unknown) => callControl(controlSocket, method, path, body)
  return {
    child,
    folder,
    controlSocket,
    log: () => lines.join('\n'),
    control,
    setPolicy: async (policy) => void (await control('PUT', '/policy', policy)),
    async serve(machineId, settings = directly) {
      const socketPath = join(folder, `${machineId}.sock`)
      await control('PUT', `/machines/${machineId}`, { socket_path: socketPath, settings })
      return TestMachine.open(socketPath)
    },
    workers: () => childrenOf(child.pid as number),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGTERM')
        await once(child, 'exit')
      }
      await rm(folder, { recursive: true })
    },
  }
}

export async function callControl(socketPath: string, method: string, path: string, body?: unknown): Promise<string> {
  const headers = body === undefined ? {} : { 'content-type': 'application/json' }
  const outgoing = request({ socketPath, path, method, headers, agent: false })
  outgoing.end(body === undefined ? undefined : JSON.stringify(body))
  const [answer] = await once(outgoing, 'response')
  const text = await textOf(answer)
  if (answer.statusCode >= 300) throw new Error(`${answer.statusCode} ${text}`)
  return text
}

/** The child processes in the order of their start. */
async function childrenOf(pid: number): Promise<readonly number[]> {
  const tasks = await readdir(`/proc/${pid}/task`)
  const lists = await Promise.all(tasks.map((task) => readFile(`/proc/${pid}/task/${task}/children`, 'utf8')))
  return lists
    .flatMap((list) => list.split(' '))
    .filter((child) => child.trim() !== '')
    .map(Number)
    .toSorted((one, other) => one - other)
}

/** The peak resident memory of a process in MiB. */
export async function peakMemory(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
}
