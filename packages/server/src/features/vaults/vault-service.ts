import { newId, type ProjectId, type VaultId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { VaultReference } from '@berth/contract/vaults/vault.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { VaultKeys } from './encryption/vault-keys.ts'
import type { LinkedVault, VaultPublicKey } from './vault.ts'
import type { StoredVault, VaultStore } from './vault-store.ts'

interface VaultServiceOptions {
  readonly store: VaultStore
  readonly keys: VaultKeys
  readonly clock: Clock
}

/** The rules of vaults. ItemService has those of items. */
export class VaultService {
  readonly #store: VaultStore
  readonly #keys: VaultKeys
  readonly #clock: Clock

  constructor({ store, keys, clock }: VaultServiceOptions) {
    this.#store = store
    this.#keys = keys
    this.#clock = clock
  }

  /** Creates the vault, or returns the one with this name. */
  async upsert(projectId: ProjectId, name: string): Promise<{ readonly vault: StoredVault; readonly isNew: boolean }> {
    const now = this.#clock.now()
    // Each repetition means that the vault was deleted in between, so the loop ends.
    for (;;) {
      const id = newId('vault', now)
      const made = await this.#store.insert({ id, project_id: projectId, name, created_at: now, updated_at: now })
      const vault = made ?? (await this.#store.find(projectId, name))
      if (vault) return { vault, isNew: made !== undefined }
    }
  }

  async list(projectId: ProjectId, text: string | undefined, page: PageRequest): Promise<Page<StoredVault>> {
    return this.#store.list(projectId, text, page)
  }

  async get(projectId: ProjectId, idOrName: string): Promise<StoredVault> {
    const vault = await this.#store.find(projectId, idOrName)
    if (!vault) throw new BerthError('vault_not_found', { vault: idOrName })
    return vault
  }

  /** The vaults for a new session, without duplicates. Undefined if the request contains none. */
  async link(
    projectId: ProjectId,
    references: readonly VaultReference[] | null | undefined,
  ): Promise<readonly LinkedVault[] | undefined> {
    if (!references || references.length === 0) return undefined
    const links = new Map<VaultId, LinkedVault>()
    for (const { id, name = '' } of references) {
      const by = id === undefined ? 'name' : 'id'
      const vault = await this.get(projectId, id ?? name)
      if (vault[by] !== (id ?? name)) throw new BerthError('vault_not_found', { vault: id ?? name })
      if (!links.has(vault.id)) links.set(vault.id, { id: vault.id, name: vault.name, by })
    }
    return [...links.values()]
  }

  async delete(projectId: ProjectId, idOrName: string): Promise<void> {
    const { id } = await this.get(projectId, idOrName)
    if (!(await this.#store.delete(id))) throw new BerthError('vault_not_found', { vault: idOrName })
  }

  async encryptionKey(projectId: ProjectId, idOrName: string): Promise<VaultPublicKey> {
    const vault = await this.get(projectId, idOrName)
    if (vault.public_key) return vault.public_key
    const kept = await this.#store.keepKeys(vault.id, await this.#keys.generate(projectId, vault.id))
    if (!kept?.public_key) throw new BerthError('vault_not_found', { vault: idOrName })
    return kept.public_key
  }
}
