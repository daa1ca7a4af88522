import type { Selectable } from 'kysely'
import type { ProxyTable } from '../../database/tables.ts'

export type StoredProxy = Selectable<ProxyTable>

/** Write-only values of a caller. */
export interface ProxySecrets {
  readonly password?: string | undefined
  readonly ca_bundle?: string | undefined
}
