import { z } from 'zod'
import { Timestamp } from '../common/time.ts'

/** The characters of folder names. `.` and `..` are excluded. */
export const ExtensionName = z
  .string()
  .regex(/^(?!\.{1,2}$)[a-zA-Z0-9._-]{1,255}$/, {
    error: 'must have 1 to 255 characters out of letters, digits and . _ -, and more than dots',
  })
  .meta({ override: { type: 'string', pattern: '^[a-zA-Z0-9._-]{1,255}$' } })

export const maxExtensionBytes = 50 * 1024 * 1024
export const maxExtensionsOfSession = 20

/** A stored extension. */
export const Extension = z
  .object({
    id: z.string(),
    created_at: Timestamp,
    size_bytes: z.int().meta({ description: 'Size of the archive.' }),
    name: z.string().nullable(),
    checksum: z.string().nullable().meta({ description: 'SHA-256 of the uploaded archive, in lower-case hex.' }),
    last_used_at: Timestamp.nullable(),
  })
  .meta({ id: 'Extension' })
export type Extension = z.infer<typeof Extension>

/** Refers to a stored extension by exactly one of its id and its name. */
export const ExtensionReference = z
  .object({ id: z.string().min(1).max(255).optional(), name: z.string().min(1).max(255).optional() })
  .refine(({ id, name }) => (id === undefined) !== (name === undefined), {
    error: 'must have exactly one of id and name',
  })
  .meta({ id: 'ExtensionReference' })
export type ExtensionReference = z.infer<typeof ExtensionReference>
