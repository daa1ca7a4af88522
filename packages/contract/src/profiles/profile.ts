import { z } from 'zod'
import { idPattern } from '../common/ids.ts'
import { Timestamp } from '../common/time.ts'

/** Excludes names that look like an id, which lookups could not distinguish. */
export const ProfileName = z
  .string()
  .regex(/^[a-zA-Z0-9._-]{1,255}$/, { error: 'must have 1 to 255 characters out of letters, digits and . _ -' })
  .refine((name) => !idPattern.test(name), { error: 'cannot have the shape of an id' })

/** Saved browser state that sessions start from. */
export const Profile = z
  .object({
    id: z.string(),
    name: z.string().nullable(),
    created_at: Timestamp,
    updated_at: Timestamp.meta({ description: 'When it was last saved, renamed or created.' }),
    last_used_at: Timestamp.optional().meta({ description: 'When a session last used it.' }),
  })
  .meta({ id: 'Profile' })
export type Profile = z.infer<typeof Profile>

/** The profile of a session, and whether it saves changes. */
export const BrowserProfile = z
  .object({
    id: z.string().min(1).max(255).optional(),
    name: z.string().min(1).max(255).optional(),
    save_changes: z.boolean().default(false).meta({
      description: 'Save the state of the browser to the profile when the session is deleted or times out.',
    }),
  })
  .refine(({ id, name }) => (id === undefined) !== (name === undefined), {
    error: 'must have exactly one of id and name',
  })
  .meta({ id: 'BrowserProfile' })
export type BrowserProfile = z.infer<typeof BrowserProfile>
