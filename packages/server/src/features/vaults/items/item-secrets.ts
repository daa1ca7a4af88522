import { createHash } from 'node:crypto'
import type { ProjectId, VaultItemId } from '@berth/contract/common/ids.ts'
import type { ItemField } from '@berth/contract/vaults/item-field.ts'
import type { ProjectSecrets } from '../../../secrets/project-secrets.ts'
import type { StoredItem } from './item-store.ts'

/** The values of an item by field name. */
export type ItemValues = ReadonlyMap<string, string>

export interface ItemSpec {
  readonly description: string | null
  readonly fields: readonly ItemField[]
  readonly allowedDomains: readonly string[] | null
}

/** Encrypts and decrypts the secrets of an item. */
export class ItemSecrets {
  readonly #secrets: ProjectSecrets

  constructor(secrets: ProjectSecrets) {
    this.#secrets = secrets
  }

  async seal(projectId: ProjectId, id: VaultItemId, values: ItemValues): Promise<Buffer> {
    return this.#secrets.seal(projectId, JSON.stringify([...values]), `values of vault item ${id}`)
  }

  async open(projectId: ProjectId, { id, sealed_values }: StoredItem): Promise<ItemValues> {
    return new Map(JSON.parse(await this.#secrets.unseal(projectId, sealed_values, `values of vault item ${id}`)))
  }

  /** Encrypted, because with a plain hash, readers of the database could test guesses of passwords. */
  async sealDigest(projectId: ProjectId, id: VaultItemId, digest: string): Promise<Buffer> {
    return this.#secrets.seal(projectId, digest, `spec of vault item ${id}`)
  }

  async openDigest(projectId: ProjectId, { id, sealed_spec_digest }: StoredItem): Promise<string> {
    return this.#secrets.unseal(projectId, sealed_spec_digest, `spec of vault item ${id}`)
  }
}

/** Equal for two requests that create the same item. Encrypted values are compared by their plain text. */
export function digestOf({ description, fields, allowedDomains }: ItemSpec, values: ItemValues): string {
  const definitions = fields.map(({ name, type, required, sensitive, label }) => [
    ...[name, type, required, sensitive, label ?? null],
    values.get(name) ?? null,
  ])
  return createHash('sha256')
    .update(JSON.stringify([description, definitions, allowedDomains]))
    .digest('hex')
}
