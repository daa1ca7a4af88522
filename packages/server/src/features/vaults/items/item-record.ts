import type { ItemField } from '@berth/contract/vaults/item-field.ts'
import type { VaultItem, VaultItemEvent } from '@berth/contract/vaults/vault-item.ts'
import { collectionPath } from '../collection/collection-links.ts'
import type { StoredEvent } from './event-store.ts'
import type { ItemValues } from './item-secrets.ts'
import type { OpenItem } from './item-service.ts'
import type { StoredItem } from './item-store.ts'
import type { ManagedLogin } from './managed-login.ts'

type Operation = VaultItem['available_operations'][number]

const collect: Operation = {
  type: 'collect',
  description: 'Get a link to a page where a person enters the values.',
}
const fill: Operation = {
  type: 'fill',
  description: 'Fill the values into a page of a browser that is linked to the vault.',
}
const invoke: Operation = { type: 'webmcp_invoke', description: 'Call a tool of such a page with the values.' }

/** Formats an item. Values of sensitive fields never become part of it. */
export function itemRecord({ item, values, link, managed }: OpenItem, publicUrl: string): VaultItem {
  if (managed) return managedRecord(item, managed)
  return {
    id: item.id,
    key: item.key,
    type: 'credential',
    version: item.version,
    created_at: item.created_at.toISOString(),
    updated_at: item.updated_at.toISOString(),
    spec: {
      provider: 'kernel',
      ...(item.description !== null && { description: item.description }),
      fields: [...item.fields],
      ...(item.allowed_domains && { allowed_domains: [...item.allowed_domains] }),
    },
    state: {
      provider: 'kernel',
      status: item.status,
      fields: Object.fromEntries(item.fields.map((field) => [field.name, fieldState(field, values)])),
    },
    ...(link && {
      action: {
        name: 'collect',
        url: `${publicUrl}${collectionPath}/${link.token}`,
        expires_at: link.expiresAt.toISOString(),
      },
    }),
    available_operations: item.status === 'ready' ? [collect, fill, invoke] : [collect],
    available_expansions: [],
  }
}

/** The record of an item that uses the credential of a connection. */
function managedRecord(item: StoredItem, managed: ManagedLogin): VaultItem {
  const fields = Object.fromEntries(item.fields.map(({ name, type }) => [name, { type }]))
  return {
    id: item.id,
    key: item.key,
    type: 'credential',
    version: item.version,
    created_at: item.created_at.toISOString(),
    updated_at: item.updated_at.toISOString(),
    spec: {
      provider: 'managed_auth',
      connection_id: item.connection_id ?? '',
      ...(item.description !== null && { description: item.description }),
    },
    state: {
      provider: 'managed_auth',
      status: managed.status,
      ...(managed.status === 'ready' ? { fields } : { status_reason: managed.reason }),
    },
    available_operations: managed.status === 'ready' ? [fill] : [],
    available_expansions: [],
  }
}

/** The form in lists: without the fields of a connection's credential. */
export function listedItem(opened: OpenItem, publicUrl: string): VaultItem {
  const record = itemRecord(opened, publicUrl)
  if (record.state.provider !== 'managed_auth') return record
  const { fields: _fields, ...state } = record.state
  return { ...record, state }
}

function fieldState({ name, sensitive }: ItemField, values: ItemValues) {
  const value = values.get(name)
  return { has_value: value !== undefined, ...(!sensitive && value !== undefined && { value }) }
}

export function eventRecord({ id, created_at, name, browser_id, data }: StoredEvent): VaultItemEvent {
  return {
    id,
    created_at: created_at.toISOString(),
    name,
    ...(browser_id !== null && { browser_id }),
    ...(data && { data: data as NonNullable<VaultItemEvent['data']> }),
  }
}
