import { z } from 'zod'

/** Characters that cannot be displayed in headers and tables. */
const controlCharacters = /\p{Cc}/u

/** Text of 1 to `maximum` Unicode code points, without surrounding spaces and control characters. */
export function nameOf(maximum: number) {
  return z
    .string()
    .transform((name) => name.trim())
    .refine((name) => name !== '', { error: 'must not be blank' })
    .refine((name) => [...name].length <= maximum, { error: `must have at most ${maximum} characters` })
    .refine((name) => !controlCharacters.test(name), { error: 'must have no control characters' })
    .meta({ override: { type: 'string', minLength: 1, maxLength: maximum } })
}

/** Search text in a query. */
export const SearchText = z.string().max(1024)
