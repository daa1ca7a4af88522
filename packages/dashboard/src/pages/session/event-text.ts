import type { TelemetryEvent } from '@berth/contract/telemetry/telemetry-event.ts'

type Data = Readonly<Record<string, unknown>>

/** A one-line summary of an event. */
export function eventText({ type, data = {} }: TelemetryEvent): string {
  const text = summaryOf(type, data)
  return text === '' ? nameOf(type) : `${nameOf(type)}: ${text}`.slice(0, 300)
}

function summaryOf(type: string, data: Data): string {
  if (type === 'monitor_screenshot') return ''
  const parts = [
    data.method,
    data.status,
    data.code,
    data.operation,
    data.command,
    data.text,
    data.key,
    data.url,
    data.path,
    data.error_text,
    data.detail,
  ]
  return parts.filter((part) => typeof part === 'string' || typeof part === 'number').join(' ')
}

export function nameOf(type: string): string {
  return type.replaceAll('_', ' ')
}

export function millisecondsOf({ ts }: TelemetryEvent): number {
  return ts / 1000
}

/** With milliseconds, because the order within a second matters. */
export function clockText({ ts }: TelemetryEvent): string {
  return new Date(ts / 1000).toISOString().slice(11, 23)
}
