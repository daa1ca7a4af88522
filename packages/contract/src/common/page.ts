import { z } from 'zod'

export const defaultPageLimit = 20
export const maxPageLimit = 100

/** Numbers beyond the exact range of JavaScript are clamped to it: no list is that long. */
const wholeNumber = (rule: string) =>
  z
    .string()
    .regex(/^\d+$/, { error: rule })
    .transform((text) => Math.min(Number(text), Number.MAX_SAFE_INTEGER))

/**
 * The query of a list with offsets. A limit above 100 is clamped, because the official CLI requests one more than its
 * page.
 */
export const PageQuery = z.object({
  limit: wholeNumber('must be a whole number of at least 1')
    .refine((limit) => limit >= 1, { error: 'must be a whole number of at least 1' })
    .transform((limit) => Math.min(limit, maxPageLimit))
    .default(defaultPageLimit)
    .meta({
      description: `Larger values are reduced to ${maxPageLimit}.`,
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

/** One page of a list, and whether another one follows. */
export interface Page<Item> {
  readonly items: readonly Item[]
  readonly hasMore: boolean
}

/** The four headers of every list with offsets. The next offset is 0 on the last page, where clients stop. */
export function pageHeaders({ limit, offset }: PageRequest, page: Page<unknown>): Record<string, string> {
  return {
    'x-limit': String(limit),
    'x-offset': String(offset),
    'x-has-more': String(page.hasMore),
    'x-next-offset': String(page.hasMore ? offset + page.items.length : 0),
  }
}
