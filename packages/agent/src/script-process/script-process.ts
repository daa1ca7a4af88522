import { randomUUID } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { ChildProgram } from '../browser/child-program.ts'
import { familyVariable } from '../process/process-environment.ts'
import { killDescendants, killFamily } from '../process/process-family.ts'
import { besideMain } from './beside-main.ts'
import { MessageLine } from './message-line.ts'

/** Maximum heap of the code; exceeding it ends only its own process. */
const maxHeapMegabytes = 512

interface ScriptProcessOptions<Received> {
  readonly program: string
  readonly args: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly maxMessageBytes: number
  readonly onMessage: (message: Received) => void
}

/**
 * A process that runs code of the session's callers, and its connection to the agent. The code can forge messages on
 * that connection, so it is bounded, and a process that sends malformed ones is killed.
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
    // Everything that a process has started ends with it.
    this.ended = this.#program.ended.then((how) => {
      this.kill()
      return this.#corruption ?? how
    })
  }

  send(message: Sent): void {
    this.#line.send(message)
  }

  /** Kills it with everything that it has started. */
  kill(): void {
    const { pid } = this.#program.child
    if (pid !== undefined) killFamily({ id: this.#id, pid }).catch(() => {}) // No process is left.
  }

  /** Kills everything that it has started, but not itself; resolves with whether there was anything. */
  async killDescendants(): Promise<boolean> {
    const { pid } = this.#program.child
    return pid !== undefined && killDescendants({ id: this.#id, pid })
  }
}
