import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { EgressPolicy } from '@berth/contract/egress/egress-endpoints.ts'
import { fetchThrough } from './proxy-client.ts'
import { directly } from './started-egress.ts'

const main = new URL('../main.ts', import.meta.url).pathname

export interface EgressProcess extends AsyncDisposable {
  readonly child: ChildProcess
  readonly folder: string
  readonly controlSocket: string
  /** What it has logged so far. */
  log(): string
  /** Calls its control endpoint; rejects unless it succeeds. */
  control(method: string, path: string, body?: unknown): Promise<string>
  setPolicy(policy: EgressPolicy): Promise<void>
  /** Serves a machine, and returns the path of its socket. */
  serve(machineId: string): Promise<string>
  /** The most memory that it has had resident, in MiB. */
  peakMemory(): Promise<number>
}

/** Starts the real daemon; with `wrapper`, by a command that takes another at its end. Resolves when it is ready. */
export async function startEgressProcess({
  wrapper = [],
}: {
  wrapper?: readonly string[]
} = {}): Promise<EgressProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-egress-'))
  const controlSocket = join(folder, 'control.sock')
  const [program = '', ...rest] = [
    ...wrapper,
    process.execPath,
    main,
    '--control-socket',
    controlSocket,
    '--log-level',
    'debug',
  ]
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

  const control = async (method: string, path: string, body?: unknown) => {
    const json =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    const answer = await fetchThrough(controlSocket, path, { method, ...json })
    if (answer.status >= 300) throw new Error(`${answer.status} ${answer.body}`)
    return answer.body
  }
  return {
    child,
    folder,
    controlSocket,
    log: () => lines.join('\n'),
    control,
    setPolicy: async (policy) => void (await control('PUT', '/policy', policy)),
    async serve(machineId) {
      const socketPath = join(folder, `${machineId}.sock`)
      await control('PUT', `/machines/${machineId}`, { socket_path: socketPath, settings: directly })
      return socketPath
    },
    async peakMemory() {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
      return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGTERM')
        await once(child, 'exit')
      }
      await rm(folder, { recursive: true })
    },
  }
}
