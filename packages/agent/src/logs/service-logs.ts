import type { ServiceName } from '@berth/contract/agent/agent-endpoints.ts'
import { Changes } from '@berth/runtime/async/changes.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'

const keptLines = 1_000
const maxLineLength = 2_000

export interface LogLine {
  readonly message: string
  readonly at: Date
}

/** The last lines of the programs that the agent runs, including earlier runs. */
export class ServiceLogs {
  readonly #clock: Clock
  readonly #logs: Readonly<Record<ServiceName, LineLog>>

  constructor(clock: Clock) {
    this.#clock = clock
    this.#logs = { chromium: new LineLog(clock), display: new LineLog(clock) }
  }

  append(service: ServiceName, line: string): void {
    if (line.trim() !== '') this.#logs[service].append({ message: line.slice(0, maxLineLength), at: this.#clock.now() })
  }

  history(service: ServiceName): readonly LogLine[] {
    return this.#logs[service].lines
  }

  /** New lines. A slow reader is told how many it has missed. */
  follow(service: ServiceName, signal: AbortSignal): AsyncGenerator<LogLine> {
    return this.#logs[service].follow(signal)
  }
}

class LineLog {
  readonly #clock: Clock
  readonly #changes = new Changes()
  readonly #lines: LogLine[] = []
  /** How many lines were dropped before the first stored one. */
  #dropped = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get lines(): readonly LogLine[] {
    return [...this.#lines]
  }

  append(line: LogLine): void {
    this.#lines.push(line)
    if (this.#lines.length > keptLines) {
      this.#lines.shift()
      this.#dropped += 1
    }
    this.#changes.notify()
  }

  async *follow(signal: AbortSignal): AsyncGenerator<LogLine> {
    for (let next = this.#dropped + this.#lines.length; !signal.aborted; ) {
      const missed = this.#dropped - next
      if (missed > 0) {
        next = this.#dropped
        yield { message: `${missed} lines were lost, because they were not read in time`, at: this.#clock.now() }
      }
      const line = this.#lines[next - this.#dropped]
      if (!line) await this.#changes.next(signal)
      else {
        next += 1
        yield line
      }
    }
  }
}
