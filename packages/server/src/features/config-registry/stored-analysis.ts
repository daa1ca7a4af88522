import type { Target } from '@berth/contract/config-registry/config-registry.ts'
import type { Selectable } from 'kysely'
import type { ConfigAnalysisTable } from '../../database/tables.ts'

export type StoredAnalysis = Selectable<ConfigAnalysisTable>

export function targetOf({ domain, host, target }: Pick<StoredAnalysis, 'domain' | 'host' | 'target'>): Target {
  return { domain, host, normalized: target }
}
