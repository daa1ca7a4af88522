import { z } from 'zod'

/** Characters that a name in a header or in a table cannot show. */
const controlCharacters = /\p{Cc}/u

/** Text of 1 to `maximum` Unicode code points, without spaces around it and without control characters. */
export function nameOf(maximum: number) {
  return z
    .string()
    .transform((name) => name.trim())
    .refine((name) => name !== '', { error: 'must have at least 1 character that is no space' })
    .refine((name) => [...name].length <= maximum, { error: `must have at most ${maximum} characters` })
    .refine((name) => !controlCharacters.test(name), { error: 'must have no control characters' })
    .meta({ override: { type: 'string', minLength: 1, maxLength: maximum } })
}

/** Text to search for, in a query. */
export const SearchText = z.string().max(1024)
