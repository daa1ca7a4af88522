import { randomUUID } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { ChildProgram } from '../browser/child-program.ts'
import { familyVariable } from '../process/process-environment.ts'
import { killDescendants, killFamily } from '../process/process-family.ts'
import { besideMain } from './beside-main.ts'
import { MessageLine } from './message-line.ts'

/** The most that code may keep in memory; it ends its own process with more, and nothing else. */
const maxHeapMegabytes = 512

interface ScriptProcessOptions<Received> {
  readonly program: string
  readonly args: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly maxMessageBytes: number
  readonly onMessage: (message: Received) => void
}

/**
 * A process that runs code of the session's callers, and its line to the agent. What comes over that line is theirs to
 * forge: it is bounded, and whoever breaks its form is ended.
 */
export class ScriptProcess<Sent extends object, Received extends object> {
  /** How it ended, as one phrase. Never rejects. */
  readonly ended: Promise<string>
  readonly #program: ChildProgram
  readonly #line: MessageLine<Sent, Received>
  readonly #id = randomUUID()
  #corruption: string | undefined

  constructor({ program, args, environment, maxMessageBytes, onMessage }: ScriptProcessOptions<Received>) {
    this.#program = new ChildProgram({
      program: process.execPath,
      args: [
        `--max-old-space-size=${maxHeapMegabytes}`,
        '--disable-warning=ExperimentalWarning',
        besideMain(program),
        ...args,
      ],
      environment: { ...environment, [familyVariable]: this.#id },
      pipes: 1,
    })
    this.#line = new MessageLine(this.#program.child.stdio[3] as Duplex, {
      onMessage,
      maxBytes: maxMessageBytes,
      onCorruption: (reason) => {
        this.#corruption = reason
        this.kill()
      },
    })
    // What a process has started ends with it.
    this.ended = this.#program.ended.then((how) => {
      this.kill()
      return this.#corruption ?? how
    })
  }

  send(message: Sent): void {
    this.#line.send(message)
  }

  /** Ends it with everything that it has started, wherever that has gone. */
  kill(): void {
    const { pid } = this.#program.child
    if (pid !== undefined) killFamily({ id: this.#id, pid }).catch(() => {}) // Nothing is left.
  }

  /** Ends what it has started, and not itself; resolves with whether there was any. */
  async killDescendants(): Promise<boolean> {
    const { pid } = this.#program.child
    return pid !== undefined && killDescendants({ id: this.#id, pid })
  }
}
