import { z } from 'zod'
import { type EventCategory, eventCategories, type TelemetryEventType } from './event-types.ts'

const types = Object.keys(eventCategories) as [TelemetryEventType, ...TelemetryEventType[]]
export const categoriesOfEvents = [...new Set(Object.values(eventCategories))] as [EventCategory, ...EventCategory[]]

export const TelemetryType = z.enum(types)
export const TelemetryCategory = z.enum(categoriesOfEvents)

const TelemetrySource = z
  .object({
    kind: z.enum(['cdp', 'kernel_api', 'extension', 'local_process']),
    event: z.string().optional().meta({ description: 'The native name, such as Runtime.consoleAPICalled.' }),
    metadata: z.record(z.string(), z.string()).optional(),
  })
  .meta({ id: 'BrowserTelemetryEventSource' })

/** An event of a session. docs/telemetry.md lists the data of each type. */
export const TelemetryEvent = z
  .object({
    ts: z.int().min(0).meta({ description: 'Microseconds since 1970.' }),
    type: TelemetryType,
    category: TelemetryCategory,
    source: TelemetrySource,
    data: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ override: { type: 'object', additionalProperties: true } }),
    truncated: z.boolean().optional().meta({ description: 'Part of the data was truncated.' }),
  })
  .meta({ id: 'BrowserTelemetryEvent' })
export type TelemetryEvent = z.infer<typeof TelemetryEvent>

export const TelemetryEnvelope = z
  .object({
    seq: z.int().min(1).meta({ description: 'Increases with each event of the session. A gap means lost events.' }),
    event: TelemetryEvent,
  })
  .meta({ id: 'BrowserTelemetryEventEnvelope' })
export type TelemetryEnvelope = z.infer<typeof TelemetryEnvelope>
