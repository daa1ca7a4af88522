import type { ItemField } from '@berth/contract/vaults/item-field.ts'
import type { VaultItem, VaultItemEvent } from '@berth/contract/vaults/vault-item.ts'
import { collectionPath } from '../collection/collection-links.ts'
import type { StoredEvent } from './event-store.ts'
import type { ItemValues } from './item-secrets.ts'
import type { OpenItem } from './item-service.ts'

const collect = { type: 'collect', description: 'Get a link to a page where a person enters the values.' }
const whenReady = [
  { type: 'fill', description: 'Fill the values into a page of a browser that is linked to the vault.' },
  { type: 'webmcp_invoke', description: 'Call a tool of such a page with the values.' },
]

/** Formats an item. Values of sensitive fields never become part of it. */
export function itemRecord({ item, values, link }: OpenItem, publicUrl: string): VaultItem {
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
    available_operations: item.status === 'ready' ? [collect, ...whenReady] : [collect],
    available_expansions: [],
  }
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
