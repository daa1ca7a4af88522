import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import type { SelectQueryBuilder } from 'kysely'
import type { Tables } from './tables.ts'

type Listed = 'sessions' | 'profiles' | 'proxies' | 'extensions'

/** The page of what the query finds, newest first; one row more tells whether another page follows. */
export async function newestPage<Table extends Listed, Row>(
  query: SelectQueryBuilder<Tables, Table, Row>,
  { limit, offset }: PageRequest,
): Promise<Page<Row>> {
  const rows = await (query as SelectQueryBuilder<Tables, Listed, Row>)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .offset(offset)
    .execute()
  return { items: rows.slice(0, limit), hasMore: rows.length > limit }
}
