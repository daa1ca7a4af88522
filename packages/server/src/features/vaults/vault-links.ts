import type { ProjectId, VaultId } from '@berth/contract/common/ids.ts'
import type { VaultReference } from '@berth/contract/vaults/vault.ts'
import type { VaultService } from './vault-service.ts'

/** A vault that a session was created with. A vault of the same name that is made later is another one. */
export interface LinkedVault {
  readonly id: VaultId
  readonly name: string
  /** How the creator of the session named it. */
  readonly by: 'id' | 'name'
}

/** Finds the vaults that a session is created with. */
export class VaultLinks {
  readonly #vaults: VaultService

  constructor(vaults: VaultService) {
    this.#vaults = vaults
  }

  /** Each vault once. Undefined when the request names none. */
  async find(projectId: ProjectId, references: readonly VaultReference[] | null | undefined) {
    if (!references || references.length === 0) return undefined
    const links = new Map<VaultId, LinkedVault>()
    for (const { id, name } of references) {
      const vault = await (id === undefined
        ? this.#vaults.getByName(projectId, name ?? '')
        : this.#vaults.getById(projectId, id))
      if (!links.has(vault.id)) {
        links.set(vault.id, { id: vault.id, name: vault.name, by: id === undefined ? 'name' : 'id' })
      }
    }
    return [...links.values()]
  }
}

/** Formats links as the creator of the session wrote them. */
export function vaultReferences(links: readonly LinkedVault[]): VaultReference[] {
  return links.map(({ id, name, by }) => (by === 'id' ? { id } : { name }))
}
