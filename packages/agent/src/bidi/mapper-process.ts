import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Duplex } from 'node:stream'
import { ChildProgram } from '../browser/child-program.ts'
import { besideMain } from '../script-process/beside-main.ts'

/** More than the messages of any page need; a client that exceeds it ends this process instead of the agent. */
const maxHeapMegabytes = 512

let started = 0

/**
 * The process that translates BiDi. It starts with the first client, does not delay the agent, and when a client
 * crashes it or exhausts its memory, only BiDi clients are disconnected.
 */
export class MapperProcess {
  readonly socketPath: string
  /** How the process ended, as one phrase. Never rejects. */
  readonly ended: Promise<string>
  readonly #program: ChildProgram
  readonly #line: Duplex

  private constructor(socketPath: string, program: ChildProgram, line: Duplex) {
    this.socketPath = socketPath
    this.ended = program.ended.finally(() => rm(socketPath, { force: true }))
    this.#program = program
    this.#line = line
  }

  /** Resolves when clients can connect. `onSessionEnd` is called for classic sessions that a client ends over BiDi. */
  static async start(runFolder: string, onSessionEnd: (id: string) => void): Promise<MapperProcess> {
    const socketPath = join(runFolder, `bidi-${process.pid}-${++started}.sock`)
    const program = new ChildProgram({
      program: process.execPath,
      args: [`--max-old-space-size=${maxHeapMegabytes}`, besideMain('bidi-mapper'), socketPath],
      environment: {},
      pipes: 1,
    })
    const line = program.child.stdio[3] as Duplex
    line.on('error', () => {}) // The process has ended; its exit is reported elsewhere.
    const mapper = new MapperProcess(socketPath, program, line)
    const lines = createInterface({ input: line }).on('error', () => {})
    const how = await Promise.race([once(lines, 'line').then(() => undefined), mapper.ended])
    if (how !== undefined) throw new Error(`the BiDi mapper did not start: ${how}`)
    lines.on('line', onSessionEnd)
    return mapper
  }

  /** Closes the BiDi connections of a classic session that has ended. */
  endSession(id: string): void {
    this.#line.write(`${id}\n`)
  }

  kill(): void {
    this.#program.kill()
  }
}
