import { access, constants } from 'node:fs/promises'
import module from 'node:module'
import { delimiter, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ReadStream } from 'node:tty'
import { BerthError } from '@berth/contract/errors.ts'
import type { Command } from './command.ts'
import { exposeToMemoryKiller } from './memory-killer.ts'
import type { Program, ProgramOptions } from './program.ts'

/** The last output of the terminal arrives within a moment, unless another process keeps the terminal open. */
const lastOutputMilliseconds = 200

/**
 * The native part of node-pty. Its JavaScript part is not used: it closes a terminal 200 ms after its program's end,
 * even if there is unread output, and throws errors that cannot be caught.
 */
interface NativeTerminals {
  fork(
    ...args: [
      ...[program: string, args: readonly string[], environment: readonly string[], folder: string],
      ...[columns: number, rows: number, uid: number, gid: number, isUtf8: boolean, helper: string],
      onExit: (code: number, signal: number) => void,
    ]
  ): { readonly fd: number; readonly pid: number }
  resize(descriptor: number, columns: number, rows: number): void
}

interface TerminalOptions extends ProgramOptions {
  readonly rows: number
  readonly columns: number
}

/** A program in a terminal of its own; the terminal's output counts as standard output. */
export class TerminalProgram implements Program {
  readonly pid: number
  readonly ended: Promise<number>
  readonly #native: NativeTerminals
  readonly #descriptor: number
  readonly #terminal: ReadStream
  #hasExited = false
  readonly #closed = Promise.withResolvers<void>()

  private constructor(command: Command, native: NativeTerminals, { rows, columns, onOutput }: TerminalOptions) {
    const exited = Promise.withResolvers<number>()
    const environment = { TERM: 'xterm-256color', ...command.environment }
    const { fd, pid } = native.fork(
      ...[command.program, command.args, Object.entries(environment).map(([name, value]) => `${name}=${value}`)],
      ...([command.folder, columns, rows, -1, -1, true, ''] as const),
      (code, signal) => exited.resolve(signal ? -1 : code),
    )
    this.pid = pid
    this.#native = native
    this.#descriptor = fd
    this.#terminal = new ReadStream(fd)
    // A terminal reports its end as an error.
    this.#terminal.on('error', () => {}).on('close', () => this.#closed.resolve())
    this.#terminal.on('data', (bytes: Buffer) => onOutput('stdout', bytes))
    this.ended = this.#end(exited.promise)
  }

  static async start(command: Command, options: TerminalOptions): Promise<TerminalProgram> {
    // In a terminal the error would only be printed.
    await checkProgram(command)
    const native = module.createRequire(import.meta.url)(
      `@lydell/node-pty-linux-${process.arch}/pty.node`,
    ) as NativeTerminals
    const program = new TerminalProgram(command, native, options)
    exposeToMemoryKiller(program.pid)
    return program
  }

  pause(): void {
    if (this.#hasExited) return
    this.#terminal.pause()
  }

  resume(): void {
    this.#terminal.resume()
  }

  write(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#terminal.write(bytes, (error) => (error ? reject(error) : resolve()))
    })
  }

  resize(rows: number, columns: number): void {
    this.#native.resize(this.#descriptor, columns, rows)
  }

  async #end(exited: Promise<number>): Promise<number> {
    const code = await exited
    this.#hasExited = true
    this.resume()
    await Promise.race([this.#closed.promise, delay(lastOutputMilliseconds)])
    // Hangs up on processes that the program has left in it.
    this.#terminal.destroy()
    return code
  }
}

async function checkProgram({ program, folder, environment }: Command): Promise<void> {
  const folders = program.includes('/') ? [folder] : (environment.PATH ?? '').split(delimiter)
  const candidates = await Promise.all(
    folders.map((each) =>
      access(resolve(folder, each, program), constants.X_OK).then(
        () => true,
        () => false,
      ),
    ),
  )
  if (candidates.includes(true)) return
  throw new BerthError('process_start_failed', { command: program, reason: 'there is no such program' })
}
