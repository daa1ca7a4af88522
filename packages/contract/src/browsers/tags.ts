import { z } from 'zod'

const maxTags = 50

/** Lengths count characters. The patterns allow only characters that take one UTF-16 unit. */
const TagKey = z.string().regex(/^[A-Za-z0-9 _.:/=+@-]{1,128}$/, {
  error: 'must have 1 to 128 characters out of letters, digits, space and _ . : / = + @ -',
})
const TagValue = z.string().regex(/^[A-Za-z0-9 _.:/=+@-]{0,256}$/, {
  error: 'must have at most 256 characters out of letters, digits, space and _ . : / = + @ -',
})

/** User-defined labels of a session. */
export const Tags = z
  .record(TagKey, TagValue)
  .refine((tags) => Object.keys(tags).length <= maxTags, { error: `must have at most ${maxTags} pairs` })
  .meta({ id: 'Tags', description: `At most ${maxTags} pairs of strings.` })
export type Tags = z.infer<typeof Tags>
