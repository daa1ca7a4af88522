import type { EventCategory } from '@berth/contract/telemetry/event-types.ts'
import type { TelemetryEvent } from '@berth/contract/telemetry/telemetry-event.ts'

export type TelemetryReport = Pick<TelemetryEvent, 'type' | 'source' | 'data' | 'truncated'>

/** Receives events, and tells which ones it captures. */
export interface TelemetrySink {
  readonly now: Date
  captures(category: EventCategory): boolean
  emit(report: TelemetryReport): boolean
}
