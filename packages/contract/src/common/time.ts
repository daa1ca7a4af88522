import { z } from 'zod'

/** RFC 3339, UTC, with milliseconds. */
export const Timestamp = z.iso.datetime().meta({ override: { type: 'string', format: 'date-time' } })

/** A time from a caller, in any time zone. */
export const TimeInput = z.iso
  .datetime({ offset: true, error: 'must be a time such as 2026-01-31T12:00:00Z' })
  .transform((text) => new Date(text))
  .meta({ override: { type: 'string', format: 'date-time' } })
