import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { ProcessOutput, ProcessSpawn, ProcessStatus } from '@berth/contract/agent/operations/process-operations.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Command } from './command.ts'
import { deadline } from './deadline.ts'
import { OutputQueue } from './output-queue.ts'
import { PipedProgram } from './piped-program.ts'
import { killFamily, signalGroup } from './process-family.ts'
import type { Program, ProgramOptions } from './program.ts'

const maxWaitingOutputBytes = 1024 * 1024
const maxWaitingInputBytes = 16 * 1024 * 1024
const endMilliseconds = 100
const pageBytes = 4096
/** The kernel's unit of processor time, on every architecture that Node.js supports. */
const ticksPerSecond = 100

interface SpawnOptions {
  readonly command: Command
  readonly request: ProcessSpawn
  readonly runFolder: string
  readonly clock: Clock
}

/** A program that runs in the background, until some time after its end. */
export class SpawnedProcess {
  readonly id: string
  readonly startedAt: Date
  readonly ended: Promise<number>
  readonly #command: Command
  readonly #program: Program
  readonly #output: OutputQueue
  #exitCode: number | null = null
  readonly #started = performance.now()
  #waitingInputBytes = 0

  private constructor({ command, request, clock }: SpawnOptions, program: Program, output: OutputQueue) {
    this.startedAt = clock.now()
    this.id = command.id
    this.#command = command
    this.#program = program
    this.#output = output
    const limit = deadline(request.timeout_sec ?? 0)
    void limit.over.then(() => this.#kill())
    this.ended = program.ended.then((exitCode) => {
      limit.cancel()
      this.#exitCode = exitCode
      output.end(exitCode)
      return exitCode
    })
  }

  static async start(options: SpawnOptions): Promise<SpawnedProcess> {
    let program: Program | undefined
    const output = new OutputQueue({
      limitBytes: maxWaitingOutputBytes,
      onFull: () => program?.pause(),
      onRoom: () => program?.resume(),
    })
    program = await startProgram(options, (stream, bytes) => output.add(stream, bytes))
    return new SpawnedProcess(options, program, output)
  }

  get pid(): number {
    return this.#program.pid
  }

  get isRunning(): boolean {
    return this.#exitCode === null
  }

  output(signal: AbortSignal): AsyncGenerator<ProcessOutput> {
    return this.#output.read(signal)
  }

  async status(): Promise<ProcessStatus> {
    const exitCode = this.#exitCode
    const { cpuPercent, residentBytes } = exitCode === null ? await this.#usage() : idle
    return {
      state: exitCode === null ? 'running' : 'exited',
      exit_code: exitCode,
      cpu_pct: cpuPercent,
      mem_bytes: residentBytes,
    }
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#mustRun()
    if (this.#waitingInputBytes + bytes.length > maxWaitingInputBytes) {
      throw new BerthError('process_input_full', { limitBytes: maxWaitingInputBytes })
    }
    this.#waitingInputBytes += bytes.length
    try {
      await this.#program.write(bytes)
    } catch (cause) {
      // The end is reported slightly later than the end of reading.
      await Promise.race([this.ended, delay(endMilliseconds)])
      this.#mustRun()
      throw new BerthError('process_input_closed', undefined, { cause })
    } finally {
      this.#waitingInputBytes -= bytes.length
    }
  }

  /** Resolves when the signal is sent; for KILL, when no process is left. */
  async signal(name: 'TERM' | 'KILL' | 'INT' | 'HUP'): Promise<void> {
    this.#mustRun()
    if (name === 'KILL') return this.#kill()
    if (!signalGroup(this.pid, `SIG${name}`)) throw new BerthError('process_not_running')
  }

  resize(rows: number, columns: number): void {
    if (!this.#program.resize) throw new BerthError('process_has_no_terminal')
    this.#mustRun()
    this.#program.resize(rows, columns)
  }

  #kill(): Promise<void> {
    return killFamily({ id: this.#command.id, pid: this.pid })
  }

  #mustRun(): void {
    if (!this.isRunning) throw new BerthError('process_not_running')
  }

  async #usage(): Promise<typeof idle> {
    const stat = await readFile(`/proc/${this.pid}/stat`, 'latin1').catch(() => '')
    // After the name, which may contain anything: user and system time are fields 14 and 15, resident pages field 24.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const seconds = (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / ticksPerSecond
    const age = Math.max((performance.now() - this.#started) / 1000, 1 / ticksPerSecond)
    return {
      cpuPercent: Math.round((seconds / age) * 1000) / 10,
      residentBytes: Number(fields[21] ?? 0) * pageBytes,
    }
  }
}

const idle = { cpuPercent: 0, residentBytes: 0 }

async function startProgram(
  { command, request, runFolder }: SpawnOptions,
  onOutput: ProgramOptions['onOutput'],
): Promise<Program> {
  if (!request.allocate_tty) return PipedProgram.start(command, { runFolder, onOutput, hasInput: true })
  const { TerminalProgram } = await import('./terminal-program.ts')
  return TerminalProgram.start(command, { onOutput, rows: request.rows ?? 24, columns: request.cols ?? 80 })
}
