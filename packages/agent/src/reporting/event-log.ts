import type { AgentEvent } from '@berth/contract/agent/agent-endpoints.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { SequencedLog, type SequencedRecord } from '@berth/runtime/stream/sequenced-log.ts'

/** For a server that is disconnected: beyond these limits the oldest event is dropped. */
const limits = {
  maxEvents: 10_000,
  maxLength: 4 * 1024 * 1024,
  /** The server accepts no line longer than twice this. */
  maxEventLength: 64 * 1024,
}

type Untimed<Event> = Event extends AgentEvent ? Omit<Event, 'at'> : never
type Report = Untimed<AgentEvent>

/** Events of the machine until the server has acknowledged them. */
export class EventLog {
  readonly #clock: Clock
  readonly #log = new SequencedLog<AgentEvent>(limits)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  report(event: Report): void {
    this.#log.append({ ...event, at: this.#clock.now().getTime() } as AgentEvent)
  }

  acknowledge(sequence: number): void {
    this.#log.acknowledge(sequence)
  }

  follow(after: number | undefined, signal: AbortSignal): AsyncGenerator<SequencedRecord<AgentEvent>> {
    return this.#log.follow(after, signal)
  }
}
