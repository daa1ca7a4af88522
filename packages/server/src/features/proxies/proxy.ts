import type { Selectable } from 'kysely'
import type { ProxyTable } from '../../database/tables.ts'

export type StoredProxy = Selectable<ProxyTable>

/** What a caller gives and never gets back. */
export interface ProxySecrets {
  readonly password?: string | undefined
  readonly ca_bundle?: string | undefined
}
