import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import type { SelectQueryBuilder } from 'kysely'
import type { Tables } from './tables.ts'

type Listed =
  | 'sessions'
  | 'profiles'
  | 'proxies'
  | 'extensions'
  | 'projects'
  | 'credentials'
  | 'credential_providers'
  | 'otlp_destinations'
  | 'audit_export_destinations'
  | 'config_analyses'
  | 'browser_pools'
  | 'vaults'
  | 'auth_connections'
  | 'vault_provider_configs'
  | 'deployments'
  | 'app_versions'
  | 'invocations'
  | 'webhooks'
  | 'webhook_deliveries'

/** Returns a page of the query's rows, newest first. */
export async function newestPage<Table extends Listed, Row>(
  query: SelectQueryBuilder<Tables, Table, Row>,
  page: PageRequest,
): Promise<Page<Row>> {
  const newestFirst = (query as SelectQueryBuilder<Tables, Listed, Row>)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
  return pageOf(newestFirst, page)
}

interface Pageable<Row> {
  limit(rows: number): Pageable<Row>
  offset(rows: number): Pageable<Row>
  execute(): Promise<Row[]>
}

/** Returns a page of a query with its own order. Fetches one more row to find out whether another page follows. */
export async function pageOf<Row>(query: Pageable<Row>, { limit, offset }: PageRequest): Promise<Page<Row>> {
  const rows = await query
    .limit(limit + 1)
    .offset(offset)
    .execute()
  return { items: rows.slice(0, limit), hasMore: rows.length > limit }
}
