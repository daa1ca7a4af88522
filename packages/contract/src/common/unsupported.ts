import { z } from 'zod'

/**
 * A request field of the public API that berth does not support yet. It is rejected and never ignored: a session
 * without a requested restriction or identity would be worse than no session.
 */
export const Unsupported = refused('is not supported by this version of berth', 'Not supported yet.')

/** A field of the create that an update must not ignore: its caller would take it for changed. */
export const Unchangeable = refused('cannot be changed', 'Refused: it cannot be changed.')

function refused(error: string, description: string) {
  return z
    .unknown()
    .refine((value) => value === undefined || value === null, { error })
    .optional()
    .meta({ override: { type: 'null' }, description })
}
