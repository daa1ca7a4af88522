import type { ProjectId } from '@berth/contract/common/ids.ts'
import type { ItemField, ItemFieldType } from '@berth/contract/vaults/item-field.ts'
import type { TotpCode } from '../../../secrets/totp.ts'
import type { ItemValues } from './item-secrets.ts'
import type { StoredItem } from './item-store.ts'

/** The saved credential of a connection, or the reason why there is none. */
export type ManagedLogin =
  | {
      readonly status: 'ready'
      readonly values: ItemValues
      readonly totp: ((at: Date) => TotpCode) | undefined
      /** Hosts where the values may be filled in. Null if the connection has no list. */
      readonly allowedDomains: readonly string[] | null
    }
  | {
      readonly status: 'unavailable'
      readonly reason: 'connection_not_found' | 'no_credential' | 'external_credential'
    }

/** Reads the current login of a managed auth connection. */
export type FindManagedLogin = (projectId: ProjectId, connectionId: string) => Promise<ManagedLogin>

/** The name of the field for one-time codes. Their secret is not a field. */
export const codeField = 'totp'
const secretName = 'totp_secret'

/** An item with the fields and values of its connection. */
export function itemOf(
  item: StoredItem,
  login: ManagedLogin,
): { readonly item: StoredItem; readonly values: ItemValues } {
  if (login.status === 'unavailable')
    return { item: { ...item, fields: [], status: 'pending_collection' }, values: new Map() }
  const { values: stored, totp, allowedDomains } = login
  const values = new Map([...stored].filter(([name]) => name !== secretName && !(totp && name === codeField)))
  const fields = [...values].map(([name, value]) => fieldOf(name, typeOf(name, value)))
  if (totp) {
    // The value is computed when it is filled in.
    values.set(codeField, '')
    fields.push(fieldOf(codeField, 'totp'))
  }
  return { item: { ...item, fields, status: 'ready', allowed_domains: allowedDomains }, values }
}

function fieldOf(name: string, type: ItemFieldType): ItemField {
  return { name, type, required: true, sensitive: true }
}

function typeOf(name: string, value: string): ItemFieldType {
  if (/pass(word|wd)?$/i.test(name)) return 'password'
  return /^[^\s@]+@[^\s@]+$/.test(value) ? 'email' : 'text'
}
