import { z } from 'zod'

/**
 * A request field of the public API whose feature berth does not have yet. It is refused, never ignored: a session
 * without what was asked for, such as a border or an identity, would be worse than none.
 */
export const NotYet = z
  .unknown()
  .refine((value) => value === undefined || value === null, { error: 'is not supported by this version of berth' })
  .optional()
  .meta({ override: { type: 'null' }, description: 'Not supported yet.' })
