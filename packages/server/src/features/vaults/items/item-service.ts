import { newId, type ProjectId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type {
  CredentialUpdateSpec,
  KernelSpecInput,
  ManagedAuthSpecInput,
  VaultItemRequest,
  VaultItemUpdateRequest,
} from '@berth/contract/vaults/vault-item.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { CollectionLinks } from '../collection/collection-links.ts'
import type { VaultKeys } from '../encryption/vault-keys.ts'
import type { OperationStore } from '../operations/operation-store.ts'
import type { VaultService } from '../vault-service.ts'
import type { StoredVault } from '../vault-store.ts'
import type { EventStore, StoredEvent } from './event-store.ts'
import type { ItemChanges } from './item-changes.ts'
import { digestOf, type ItemSecrets, type ItemSpec, type ItemValues } from './item-secrets.ts'
import type { ItemStore, ItemWithCollection, StoredItem } from './item-store.ts'
import { changedFields, changedValues, checkTotal, plainValue, statusOf } from './item-values.ts'
import { type FindManagedLogin, itemOf, type ManagedLogin } from './managed-login.ts'

export interface ItemServiceOptions {
  readonly vaults: VaultService
  readonly store: ItemStore
  readonly events: EventStore
  readonly operations: OperationStore
  readonly secrets: ItemSecrets
  readonly keys: VaultKeys
  readonly links: CollectionLinks
  readonly changes: ItemChanges
  readonly findManagedLogin: FindManagedLogin
  readonly clock: Clock
}

export interface NamedItem {
  readonly projectId: ProjectId
  readonly vault: string
  readonly key: string
}

/** An item with its decrypted values. */
export interface OpenItem {
  readonly vault: StoredVault
  readonly item: StoredItem
  readonly values: ItemValues
  /** The link with which a person can enter the values, while that is possible. */
  readonly link: { readonly token: string; readonly expiresAt: Date } | undefined
  /** Set for an item that uses the credential of a connection. */
  readonly managed?: ManagedLogin
}

interface Wait {
  readonly seconds: number
  readonly signal: AbortSignal
}

/** The rules of items. Values leave this class only for filling them in, or if their field is not sensitive. */
export class ItemService {
  readonly #options: ItemServiceOptions

  constructor(options: ItemServiceOptions) {
    this.#options = options
  }

  /** Creates the item. The same request finds the same item again, whatever has changed since. */
  async upsert({ projectId, vault: idOrName, key }: NamedItem, request: VaultItemRequest): Promise<OpenItem> {
    const { vaults, store, secrets, keys, links, changes, clock } = this.#options
    const vault = await vaults.get(projectId, idOrName)
    const input = servedSpecOf(request)
    if (input.provider === 'managed_auth') return this.#upsertManaged(vault, key, input)
    const values = await firstValues(input, vault, keys)
    const spec = specOf(input)
    const digest = digestOf(spec, values)
    const now = clock.now()
    const id = newId('vault-item', now)
    const status = statusOf(spec.fields, values)
    const { isNew, ...found } = await store.upsert(
      {
        id,
        vault_id: vault.id,
        key,
        status,
        description: spec.description,
        fields: JSON.stringify(spec.fields),
        allowed_domains: spec.allowedDomains && JSON.stringify(spec.allowedDomains),
        sealed_values: await secrets.seal(projectId, id, values),
        sealed_spec_digest: await secrets.sealDigest(projectId, id, digest),
        created_at: now,
        updated_at: now,
      },
      {
        collection: status === 'ready' ? undefined : await links.make(projectId, id, now),
        event: { name: 'item.created', at: now, data: { version: 1, status } },
      },
    )
    if (isNew) changes.notify()
    else if ((await secrets.openDigest(projectId, found.item)) !== digest)
      throw new BerthError('vault_item_exists', { key })
    return this.#opened(vault, found)
  }

  /** Only a new item requires a credential. An existing one may have lost it. */
  async #upsertManaged(vault: StoredVault, key: string, input: ManagedAuthSpecInput): Promise<OpenItem> {
    const { store, secrets, changes, findManagedLogin, clock } = this.#options
    const { connection_id: connectionId, description = '' } = input
    const known = await store.find(vault.id, key)
    const login = known ? undefined : await findManagedLogin(vault.project_id, connectionId)
    if (login?.status === 'unavailable') throw refusalOf(connectionId, login.reason)
    const now = clock.now()
    const id = newId('vault-item', now)
    const digest = JSON.stringify(['managed_auth', connectionId, description])
    const { isNew, ...found } = await store.upsert(
      {
        id,
        vault_id: vault.id,
        key,
        status: 'ready',
        description: description || null,
        fields: '[]',
        allowed_domains: null,
        sealed_values: await secrets.seal(vault.project_id, id, new Map()),
        sealed_spec_digest: await secrets.sealDigest(vault.project_id, id, digest),
        connection_id: connectionId,
        created_at: now,
        updated_at: now,
      },
      { collection: undefined, event: { name: 'item.created', at: now, data: { version: 1, status: 'ready' } } },
    )
    if (isNew) changes.notify()
    else if ((await secrets.openDigest(vault.project_id, found.item)) !== digest) {
      throw new BerthError('vault_item_exists', { key })
    }
    return this.#opened(vault, found)
  }

  async list(projectId: ProjectId, idOrName: string): Promise<readonly OpenItem[]> {
    const { vaults, store } = this.#options
    const vault = await vaults.get(projectId, idOrName)
    const opened: OpenItem[] = []
    for (const found of await store.list(vault.id)) opened.push(await this.#opened(vault, found))
    return opened
  }

  /**
   * Renews the link of an item whose values are not collected yet. With `wait`, waits for another version or status of
   * the item.
   */
  async get(named: NamedItem, wait?: Wait): Promise<OpenItem> {
    const first = await this.#find(named)
    if (!wait || wait.seconds === 0) return this.#withLink(first)
    const { version, status } = first.found.item
    const changed = await this.#options.changes.wait(async () => {
      const now = await this.#find(named)
      return now.found.item.version !== version || now.found.item.status !== status ? now : undefined
    }, wait)
    return this.#withLink(changed ?? (await this.#find(named)))
  }

  async update(named: NamedItem, request: VaultItemUpdateRequest): Promise<OpenItem> {
    const { vault, found } = await this.#find(named)
    const { item } = found
    const refuse = (reason: string) => new BerthError('vault_item_changed', { reason })
    if (request.type !== 'credential') throw refuse('type: the item is a credential.')
    if (item.connection_id !== null)
      throw refuse('spec: the values belong to the connection. Change its credential instead.')
    const { version, expected_item_id: expected } = request
    if (expected !== undefined && expected !== item.id) throw refuse('expected_item_id: the item has another id.')
    if (version !== item.version) throw refuse(`version: the item now has version ${item.version}.`)
    const written = await this.#write(vault, item, request.spec)
    if (!written) throw refuse('version: the item was changed or deleted meanwhile.')
    return written
  }

  /** Undefined if the version is not the newest one any more. */
  async #write(vault: StoredVault, item: StoredItem, spec: CredentialUpdateSpec): Promise<OpenItem | undefined> {
    const { store, secrets, keys, links, changes, clock } = this.#options
    const now = clock.now()
    const fields = changedFields(item.fields, spec)
    const isKept = ([name]: readonly [string, string]) => !spec.remove_fields?.includes(name)
    const before = new Map([...(await secrets.open(vault.project_id, item))].filter(isKept))
    const values = await changedValues(spec.fields ?? {}, { fields, before, keys, vault })
    const status = statusOf(fields, values)
    const columns = {
      status,
      fields: JSON.stringify(fields),
      ...(spec.description !== undefined && { description: spec.description || null }),
      sealed_values: await secrets.seal(vault.project_id, item.id, values),
      updated_at: now,
    }
    const data = { version: item.version + 1, status, fields: Object.keys(spec.fields ?? {}) }
    const written = await store.change(item, columns, {
      collection: status === 'ready' ? undefined : await links.make(vault.project_id, item.id, now),
      event: { name: 'item.updated', at: now, data },
    })
    changes.notify()
    return written && this.#opened(vault, written)
  }

  async delete({ projectId, vault: idOrName, key }: NamedItem): Promise<void> {
    const { vaults, store, changes } = this.#options
    const vault = await vaults.get(projectId, idOrName)
    if (!(await store.delete(vault.id, key))) throw new BerthError('vault_item_not_found', { key })
    changes.notify()
  }

  /** Returns the item with its current link or a new one. */
  async requestCollection(named: NamedItem): Promise<OpenItem> {
    return this.#renewed(await this.#find(named))
  }

  async listEvents(named: NamedItem, after: string | undefined, wait: Wait): Promise<readonly StoredEvent[]> {
    const { events, operations, changes, clock } = this.#options
    const { found } = await this.#find(named)
    const { id } = found.item
    const listed = await changes.wait(async () => {
      await operations.settleLost(id, clock.now())
      const list = await events.list(id, after)
      if (!list) throw new BerthError('vault_event_not_found', { event: after ?? '' })
      return list.length > 0 ? list : undefined
    }, wait)
    return listed ?? []
  }

  async #find({ projectId, vault: idOrName, key }: NamedItem): Promise<Found> {
    const vault = await this.#options.vaults.get(projectId, idOrName)
    const found = await this.#options.store.find(vault.id, key)
    if (!found) throw new BerthError('vault_item_not_found', { key })
    return { vault, found, key }
  }

  async #withLink({ vault, found, key }: Found): Promise<OpenItem> {
    const { item, collection } = found
    const isValid = collection !== undefined && collection.expires_at > this.#options.clock.now()
    if (item.status === 'ready' || isValid) return this.#opened(vault, found)
    return this.#renewed({ vault, found, key })
  }

  async #renewed({ vault, found, key }: Found): Promise<OpenItem> {
    if (found.item.connection_id !== null) throw new BerthError('vault_operation_not_available', { type: 'collect' })
    const { store, links, changes, clock } = this.#options
    const now = clock.now()
    const { id } = found.item
    const renewed = await store.renewCollection(id, await links.make(vault.project_id, id, now), {
      now,
      event: { name: 'collection.requested', at: now },
    })
    if (!renewed) throw new BerthError('vault_item_not_found', { key })
    changes.notify()
    return this.#opened(vault, renewed)
  }

  async #opened(vault: StoredVault, { item, collection }: ItemWithCollection): Promise<OpenItem> {
    const { secrets, links, findManagedLogin, clock } = this.#options
    if (item.connection_id !== null) {
      const managed = await findManagedLogin(vault.project_id, item.connection_id)
      return { vault, ...itemOf(item, managed), link: undefined, managed }
    }
    const isValid = collection !== undefined && collection.expires_at > clock.now()
    return {
      vault,
      item,
      values: await secrets.open(vault.project_id, item),
      link: isValid
        ? { token: await links.tokenOf(vault.project_id, collection), expiresAt: collection.expires_at }
        : undefined,
    }
  }
}

interface Found {
  readonly vault: StoredVault
  readonly found: ItemWithCollection
  readonly key: string
}

function refusalOf(connection: string, reason: string): BerthError {
  if (reason === 'connection_not_found') return new BerthError('auth_connection_not_found', { connection })
  const sentence =
    reason === 'no_credential' ? 'the connection has no saved credential.' : 'its credential is that of a provider.'
  return new BerthError('auth_connection_not_usable', { reason: sentence })
}

/** Rejects types that need a service which berth does not have. */
function servedSpecOf(request: VaultItemRequest): KernelSpecInput | ManagedAuthSpecInput {
  if (request.type !== 'credential') {
    if (request.type !== 'credential_account') {
      const reason = `type: a ${request.type} needs a payment service, which this version of berth does not have.`
      throw new BerthError('insufficient_plan', { reason })
    }
    const reason = '1Password accounts need its service for access requests, which its client libraries do not offer.'
    throw new BerthError('field_not_supported', { field: 'type', reason })
  }
  const { spec } = request
  if (spec.provider === '1password') {
    const reason = '1password needs its service for access requests, which its client libraries do not offer.'
    throw new BerthError('field_not_supported', { field: 'spec.provider', reason })
  }
  return spec
}

function specOf({ description, fields, allowed_domains }: KernelSpecInput): ItemSpec {
  return {
    description: description || null,
    fields: fields.map(({ name, type, required, sensitive, label }) => ({
      ...{ name, type, required, sensitive },
      ...(label !== undefined && { label }),
    })),
    allowedDomains: allowed_domains ?? null,
  }
}

async function firstValues({ fields }: KernelSpecInput, vault: StoredVault, keys: VaultKeys): Promise<ItemValues> {
  const values = new Map<string, string>()
  for (const [index, field] of fields.entries()) {
    const value = await plainValue(field, field, { keys, vault, place: `spec.fields.${index}` })
    if (value !== undefined) values.set(field.name, value)
  }
  checkTotal(values)
  return values
}
