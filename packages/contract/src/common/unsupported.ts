import { z } from 'zod'

/**
 * A request field of the public API that berth does not support yet. It is rejected and never ignored: a session
 * without a requested restriction or identity would be worse than no session.
 */
export const Unsupported = z
  .unknown()
  .refine((value) => value === undefined || value === null, { error: 'is not supported by this version of berth' })
  .optional()
  .meta({ override: { type: 'null' }, description: 'Not supported yet.' })
