import { z } from 'zod'

/** A boolean in a query string. Clients send an empty value for null, which means absent; `parseQuery` removes it. */
export const QueryBoolean = z
  .enum(['true', 'false'])
  .transform((text) => text === 'true')
  .meta({ override: { type: 'boolean' } })
