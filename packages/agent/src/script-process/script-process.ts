import type { Duplex } from 'node:stream'
import { ChildProgram } from '../browser/child-program.ts'
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
      environment,
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

  /** Ends it with everything that it has started. */
  kill(): void {
    this.#program.kill()
  }
}
