import { newId, type ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { VaultKeys, VaultPublicKey } from './encryption/vault-keys.ts'
import type { StoredVault, VaultStore } from './vault-store.ts'

interface VaultServiceOptions {
  readonly store: VaultStore
  readonly keys: VaultKeys
  readonly clock: Clock
}

/** The rules of vaults. Their items are a service of their own. */
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
  async upsert(projectId: ProjectId, name: string): Promise<StoredVault> {
    const now = this.#clock.now()
    // Each round means that the vault was deleted in between, so the loop ends.
    for (;;) {
      const id = newId('vault', now)
      const made = await this.#store.insert({ id, project_id: projectId, name, created_at: now, updated_at: now })
      const vault = made ?? (await this.#store.find(projectId, name))
      if (vault) return vault
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

  async getById(projectId: ProjectId, id: string): Promise<StoredVault> {
    const vault = await this.get(projectId, id)
    if (vault.id !== id) throw new BerthError('vault_not_found', { vault: id })
    return vault
  }

  async getByName(projectId: ProjectId, name: string): Promise<StoredVault> {
    const vault = await this.get(projectId, name)
    if (vault.name !== name) throw new BerthError('vault_not_found', { vault: name })
    return vault
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
