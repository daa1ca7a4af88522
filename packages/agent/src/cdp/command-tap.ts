import { randomUUID } from 'node:crypto'
import { commandData, isReported } from '../telemetry/command-report.ts'
import type { TelemetryCollector } from '../telemetry/telemetry-collector.ts'

export type DisconnectReason = 'client_close' | 'upstream_changed' | 'upstream_error' | 'context_cancelled'

/** Longer commands are counted as lost. They are rare. */
export const maxTappedBytes = 1024 * 1024
const reportedDomains = /"(?:Input|DOM|Page|Target|Browser|Autofill)\./

/** The telemetry of one client's connection. */
export class CommandTap {
  readonly #telemetry: TelemetryCollector
  readonly #connectionId = randomUUID()
  readonly #openedAt = performance.now()
  #messages = 0
  #excluded = 0
  #dropped = 0
  #hasEnded = false

  constructor(telemetry: TelemetryCollector) {
    this.#telemetry = telemetry
    telemetry.emit({ type: 'cdp_connect', source: { kind: 'cdp' }, data: { connection_id: this.#connectionId } })
  }

  /** Whether the text of messages is needed. */
  get reads(): boolean {
    return this.#telemetry.captures('control')
  }

  countMessage(): void {
    this.#messages += 1
  }

  /** Takes a whole message; undefined if it was too long to be read. */
  take(text: string | undefined): void {
    if (text === undefined) {
      this.#dropped += 1
      return
    }
    if (!reportedDomains.test(text)) return
    const command = parse(text)
    if (!command || !isReported(command.method)) return
    if (this.#telemetry.excludes(command.method)) {
      this.#excluded += 1
      return
    }
    const data = commandData(command, this.#connectionId)
    const source = { kind: 'cdp' as const, event: command.method }
    if (!this.#telemetry.emit({ type: 'cdp_command', source, data })) this.#dropped += 1
  }

  end(reason: DisconnectReason): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    const data = {
      duration_ms: Math.round(performance.now() - this.#openedAt),
      message_count: this.#messages,
      reason,
      connection_id: this.#connectionId,
      telemetry_dropped: this.#dropped,
      telemetry_excluded: this.#excluded,
    }
    this.#telemetry.emit({ type: 'cdp_disconnect', source: { kind: 'cdp' }, data })
  }
}

function parse(text: string): { readonly method?: unknown } | undefined {
  try {
    const command: unknown = JSON.parse(text)
    return typeof command === 'object' && command !== null ? command : undefined
  } catch {
    return undefined // Chromium will report the error to the client.
  }
}
