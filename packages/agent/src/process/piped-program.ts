import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync } from 'node:fs'
import type { Socket } from 'node:net'
import { setImmediate as immediate } from 'node:timers/promises'
import { BerthError } from '@berth/contract/errors.ts'
import type { Command } from './command.ts'
import { exposeToMemoryKiller } from './memory-killer.ts'
import { Pipe } from './pipes.ts'
import type { OutputName, Program, ProgramOptions } from './program.ts'

/** As much as a pipe can hold; processes that still write after the program's end delay it no longer. */
const maxLastBytes = 1024 * 1024

interface PipedProgramOptions extends ProgramOptions {
  /** For files that need a name on disk briefly. */
  readonly runFolder: string
  /** Otherwise its input is empty. */
  readonly hasInput: boolean
}

/** A program whose standard input and outputs are pipes. */
export class PipedProgram implements Program {
  readonly pid: number
  readonly ended: Promise<number>
  readonly #outputs: readonly Socket[]
  readonly #input: Socket | undefined
  #onOutput: ProgramOptions['onOutput']
  #bytes = 0
  #hasExited = false

  private constructor(child: ChildProcess, pipes: readonly Pipe[], { onOutput }: ProgramOptions) {
    const [stdout, stderr, stdin] = pipes as readonly [Pipe, Pipe, Pipe?]
    this.pid = child.pid as number
    this.#onOutput = onOutput
    this.#input = stdin?.writer()
    this.#outputs = [this.#read('stdout', stdout), this.#read('stderr', stderr)]
    this.ended = this.#end(child)
  }

  /** Rejects if it cannot be started. */
  static async start(command: Command, options: PipedProgramOptions): Promise<PipedProgram> {
    const pipes = await Pipe.open(options.hasInput ? 3 : 2, options.runFolder)
    const [stdout, stderr, stdin] = pipes as readonly [Pipe, Pipe, Pipe?]
    const theirs = [stdout.writeEnd, stderr.writeEnd, stdin?.readEnd].filter((end) => end !== undefined)
    try {
      const child = await run(command, [stdin?.readEnd ?? 'ignore', stdout.writeEnd, stderr.writeEnd])
      exposeToMemoryKiller(child.pid as number)
      return new PipedProgram(child, pipes, options)
    } catch (error) {
      for (const end of [stdout.readEnd, stderr.readEnd, stdin?.writeEnd]) if (end !== undefined) closeSync(end)
      throw error
    } finally {
      for (const end of theirs) closeSync(end)
    }
  }

  pause(): void {
    if (this.#hasExited) return
    for (const output of this.#outputs) output.pause()
  }

  resume(): void {
    for (const output of this.#outputs) output.resume()
  }

  write(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#input?.write(bytes, (error) => (error ? reject(error) : resolve()))
    })
  }

  #read(name: OutputName, pipe: Pipe): Socket {
    return pipe.reader().on('data', (bytes: Buffer) => {
      this.#bytes += bytes.length
      this.#onOutput(name, bytes)
    })
  }

  async #end(child: ChildProcess): Promise<number> {
    const [code] = (await once(child, 'exit')) as [number | null]
    this.#hasExited = true
    this.#input?.destroy()
    this.resume()
    const limit = this.#bytes + maxLastBytes
    // The program's output is in the pipes by now, and each turn of the event loop reads all that is there.
    for (let seen = -1, turns = 0; turns < 3 && this.#bytes < limit; turns = seen === this.#bytes ? turns + 1 : 0) {
      seen = this.#bytes
      await immediate()
    }
    // Processes left behind may continue to write: a closed pipe would kill them, and a full one would block them
    // forever.
    this.#onOutput = () => {}
    return code ?? -1
  }
}

/** Resolves when the program has started. */
async function run({ program, args, folder, environment }: Command, stdio: StdioOptions): Promise<ChildProcess> {
  let child: ChildProcess
  try {
    child = spawn(program, args, { cwd: folder, env: environment, stdio, detached: true })
    await once(child, 'spawn')
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    throw new BerthError(
      'process_start_failed',
      { command: program, reason: startFailures[code ?? ''] ?? message },
      { cause },
    )
  }
  return child
}

const startFailures: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such program, or none to interpret it',
  EACCES: 'it may not be run',
  E2BIG: 'its arguments and environment are too long',
  EAGAIN: 'the session has no room for another process',
}
