import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const relay = join(import.meta.dirname, 'loopback-relay.mjs')
const maxOutputLength = 64 * 1024

export interface ProgramResult {
  /** Undefined when the program was stopped because it took too long. */
  readonly exitCode: number | undefined
  readonly output: string
}

/**
 * Runs third-party programs in network namespaces of their own, so that they cannot send reports or download anything.
 * They can use the given ports of this host's loopback and nothing else.
 */
export class LoopbackOnly {
  readonly #folder: string
  readonly #servers: readonly Server[]
  readonly #paths: Readonly<Record<string, string>>

  private constructor(folder: string, servers: readonly Server[], paths: Readonly<Record<string, string>>) {
    this.#folder = folder
    this.#servers = servers
    this.#paths = paths
  }

  static async open(ports: readonly number[]): Promise<LoopbackOnly> {
    const folder = await mkdtemp(join(tmpdir(), 'berth-clients-'))
    const paths = Object.fromEntries(ports.map((port) => [port, join(folder, `${port}.sock`)]))
    const servers = await Promise.all(ports.map((port) => serve(paths[port] as string, port)))
    return new LoopbackOnly(folder, servers, paths)
  }

  async run(
    command: readonly string[],
    environment: Readonly<Record<string, string>>,
    limitMilliseconds: number,
  ): Promise<ProgramResult> {
    const namespace = process.geteuid?.() === 0 ? ['--net'] : ['--map-root-user', '--net']
    // Everything it starts ends with it, because it is the first process of a pid namespace.
    const isolated = [...namespace, '--pid', '--fork', '--kill-child', '--mount-proc', '--']
    const script = 'ip link set lo up && exec "$@"'
    const inside = [process.execPath, relay, JSON.stringify(this.#paths), ...command]
    const child = spawn('unshare', [...isolated, '/bin/sh', '-c', script, 'berth-client', ...inside], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...environment },
      // Some programs write to their working folder.
      cwd: environment.HOME,
      timeout: limitMilliseconds,
      killSignal: 'SIGKILL',
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        output = `${output}${chunk}`.slice(-maxOutputLength)
      })
    }
    const [exitCode] = (await once(child, 'close')) as [number | null]
    return { exitCode: exitCode ?? undefined, output }
  }

  async close(): Promise<void> {
    for (const server of this.#servers) server.close()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

async function serve(path: string, port: number): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (inside) => {
    const outside = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    inside.pipe(outside).pipe(inside)
    for (const [socket, other] of [
      [inside, outside],
      [outside, inside],
    ] as const) {
      socket.on('error', () => other.destroy())
      socket.on('close', () => other.destroy())
    }
  })
  server.listen(path)
  await once(server, 'listening')
  return server
}
