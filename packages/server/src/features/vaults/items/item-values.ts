import { BerthError } from '@berth/contract/errors.ts'
import { brokenValueRule, type ItemField, maxItemFields } from '@berth/contract/vaults/item-field.ts'
import type { CredentialUpdateSpec, VaultItemStatus } from '@berth/contract/vaults/vault-item.ts'
import type { VaultKeys } from '../encryption/vault-keys.ts'
import type { StoredVault } from '../vault-store.ts'
import type { ItemValues } from './item-secrets.ts'

/** The limit of all values of an item together, so that a list of items stays small. */
const maxTotalBytes = 128 * 1024

interface GivenValue {
  readonly value?: string | null | undefined
  readonly encrypted_value?: string | undefined
}

/** Returns the plain value. `place` is the path of the field in the request. */
export async function plainValue(
  { type }: ItemField,
  { value, encrypted_value }: GivenValue,
  { keys, vault, place }: { readonly keys: VaultKeys; readonly vault: StoredVault; readonly place: string },
): Promise<string | undefined> {
  if (encrypted_value === undefined) return value ?? undefined
  const field = `${place}.encrypted_value`
  const plain = await keys.decrypt(vault, encrypted_value, field)
  const rule = plain === '' ? 'must not be empty' : (textRule(plain) ?? brokenValueRule(type, plain))
  if (rule !== undefined) throw new BerthError('invalid_input', { reason: `${field}: the decrypted value ${rule}.` })
  return plain
}

/** The same checks as for JSON bodies, because encrypted values are not checked on arrival. */
function textRule(text: string): string | undefined {
  return text.includes('\0') ? 'must not contain a NUL character' : undefined
}

export interface ValueChangeOptions {
  readonly fields: readonly ItemField[]
  readonly before: ItemValues
  readonly keys: VaultKeys
  readonly vault: StoredVault
}

/** Applies an update to the values. Null and an empty text remove a value. */
export async function changedValues(
  changes: NonNullable<CredentialUpdateSpec['fields']>,
  { fields, before, keys, vault }: ValueChangeOptions,
): Promise<ItemValues> {
  const values = new Map(before)
  for (const [name, given] of Object.entries(changes)) {
    const place = `spec.fields.${name.slice(0, 64)}`
    const refuse = (rule: string) => new BerthError('invalid_input', { reason: `${place}: ${rule}.` })
    const field = fields.find((known) => known.name === name)
    if (!field) throw refuse('the item has no such field')
    const value = await plainValue(field, given, { keys, vault, place })
    if (value) {
      const rule = brokenValueRule(field.type, value)
      if (rule !== undefined) throw refuse(`the value ${rule}`)
      values.set(name, value)
    } else {
      if (field.type === 'totp' && field.required) throw refuse('is required and cannot be collected again')
      values.delete(name)
    }
  }
  checkTotal(values)
  return values
}

/** The fields of an item after an update. */
export function changedFields(
  before: readonly ItemField[],
  { add_fields: added = [], remove_fields: removed = [] }: CredentialUpdateSpec,
): readonly ItemField[] {
  const refuse = (place: string, rule: string) => new BerthError('invalid_input', { reason: `spec.${place}: ${rule}.` })
  const known = new Set(before.map(({ name }) => name))
  const unknown = removed.findIndex((name) => !known.has(name))
  if (unknown !== -1) throw refuse(`remove_fields.${unknown}`, 'the item has no such field')
  const fields = before.filter(({ name }) => !removed.includes(name))
  for (const [index, { name, type, required, sensitive, label }] of added.entries()) {
    if (fields.some((field) => field.name === name))
      throw refuse(`add_fields.${index}.name`, 'the item already has such a field')
    fields.push({ name, type, required, sensitive, ...(label !== undefined && { label }) })
  }
  if (fields.length === 0) throw refuse('remove_fields', 'an item has at least 1 field')
  if (fields.length > maxItemFields) throw refuse('add_fields', `an item has at most ${maxItemFields} fields`)
  return fields
}

export function checkTotal(values: ItemValues): void {
  const total = [...values.values()].reduce((sum, value) => sum + Buffer.byteLength(value), 0)
  if (total <= maxTotalBytes) return
  throw new BerthError('invalid_input', {
    reason: `spec.fields: the values of an item must have at most ${maxTotalBytes} bytes together.`,
  })
}

/** A TOTP secret cannot be collected, so an item without it can still be ready. */
export function statusOf(fields: readonly ItemField[], values: ItemValues): VaultItemStatus {
  const isMissing = ({ name, type, required }: ItemField) => required && type !== 'totp' && !values.has(name)
  return fields.some(isMissing) ? 'pending_collection' : 'ready'
}
