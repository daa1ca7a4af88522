import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { setTimeout as delay, setImmediate as immediate } from 'node:timers/promises'

/** Available on every system; other locales break file names outside ASCII. Chromium's language stays English. */
export const locale = 'C.UTF-8'

/** The connections of a dying process close slightly before its parent is notified. */
const exitNoticeMilliseconds = 250
const rememberedLines = 20
const maxLineLength = 2_000

interface ChildProgramOptions {
  readonly program: string
  readonly args: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  /** Pipes in addition to the standard ones; the first becomes descriptor 3 of the program. */
  readonly pipes: number
  /** Whether lines of its standard output are read too. */
  readonly readsOutput?: boolean
  readonly onLine?: (line: string) => void
}

/**
 * A program that the agent runs. It leads a process group, so that the whole group can be killed, and its last lines
 * are kept.
 */
export class ChildProgram {
  readonly child: ChildProcess
  /** How it ended and its last lines, as one phrase. Never rejects. */
  readonly ended: Promise<string>
  readonly #lines: string[] = []

  constructor({ program, args, environment, pipes, readsOutput, onLine }: ChildProgramOptions) {
    this.child = spawn(program, args, {
      detached: true,
      stdio: [
        'ignore',
        readsOutput ? 'pipe' : 'ignore',
        'pipe',
        ...Array.from({ length: pipes }, () => 'pipe' as const),
      ],
      env: { LANG: locale, ...environment },
    })
    this.ended = endOf(this.child).then((how) => [how, this.lastLines].filter(Boolean).join(': '))
    for (const output of [this.child.stdout, this.child.stderr]) if (output) this.#readLines(output, onLine)
  }

  get lastLines(): string {
    return this.#lines.join('\n')
  }

  #readLines(output: Readable, onLine: ChildProgramOptions['onLine']): void {
    let unfinished = ''
    output.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = `${unfinished}${chunk}`.split('\n')
      unfinished = (lines.pop() ?? '').slice(0, maxLineLength)
      for (const line of lines) {
        this.#lines.push(line.slice(0, maxLineLength))
        if (this.#lines.length > rememberedLines) this.#lines.shift()
        onLine?.(line)
      }
    })
  }

  /** Kills the whole group immediately. */
  kill(): void {
    const { pid } = this.child
    if (pid === undefined) return
    try {
      // The whole group: zygote, GPU and renderers are Chromium's children, not ours, and can outlive it.
      process.kill(-pid, 'SIGKILL')
    } catch {
      // No process of the group is left.
    }
  }
}

async function endOf(child: ChildProcess): Promise<string> {
  try {
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    await immediate() // Read its last output, which arrives in the same turn of the event loop.
    return signal ? `ended by ${signal}` : `exit code ${code}`
  } catch (error) {
    return `it cannot be run: ${(error as Error).message}`
  }
}

/** Whether one of the processes has ended or is about to end. */
export async function endsNow(
  ends: readonly Promise<unknown>[],
  withinMilliseconds = exitNoticeMilliseconds,
): Promise<boolean> {
  return Promise.race([...ends.map((end) => end.then(() => true)), delay(withinMilliseconds, false, { ref: false })])
}
