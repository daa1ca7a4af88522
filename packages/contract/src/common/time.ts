import { z } from 'zod'

/** RFC 3339, UTC, with milliseconds. */
export const Timestamp = z.iso.datetime().meta({ override: { type: 'string', format: 'date-time' } })
