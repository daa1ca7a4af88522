import { z } from 'zod'

export const defaultPageLimit = 20
export const maxPageLimit = 100

/** A number beyond what JavaScript counts exactly is as good as that: no list is so long. */
const wholeNumber = (rule: string) =>
  z
    .string()
    .regex(/^\d+$/, { error: rule })
    .transform((text) => Math.min(Number(text), Number.MAX_SAFE_INTEGER))

/** Query of an offset list. A limit above 100 is clamped: the official CLI asks for one more than its page. */
export const PageQuery = z.object({
  limit: wholeNumber('must be a whole number of at least 1')
    .refine((limit) => limit >= 1, { error: 'must be a whole number of at least 1' })
    .transform((limit) => Math.min(limit, maxPageLimit))
    .default(defaultPageLimit)
    .meta({
      description: `More than ${maxPageLimit} counts as ${maxPageLimit}.`,
      override: { type: 'integer', minimum: 1, default: defaultPageLimit },
    }),
  offset: wholeNumber('must be a whole number of at least 0')
    .default(0)
    .meta({ override: { type: 'integer', minimum: 0, default: 0 } }),
})

export interface PageRequest {
  readonly limit: number
  readonly offset: number
}

/** One page of a list, and whether another follows. */
export interface Page<Item> {
  readonly items: readonly Item[]
  readonly hasMore: boolean
}

/** The four headers of every offset list. The next offset is 0 on the last page: clients stop there. */
export function pageHeaders({ limit, offset }: PageRequest, page: Page<unknown>): Record<string, string> {
  return {
    'x-limit': String(limit),
    'x-offset': String(offset),
    'x-has-more': String(page.hasMore),
    'x-next-offset': String(page.hasMore ? offset + page.items.length : 0),
  }
}
