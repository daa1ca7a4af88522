import type { Vault, VaultReference } from '@berth/contract/vaults/vault.ts'
import type { LinkedVault } from './vault.ts'
import type { StoredVault } from './vault-store.ts'

export function vaultRecord({ id, name, created_at, updated_at }: StoredVault): Vault {
  return { id, created_at: created_at.toISOString(), name, updated_at: updated_at.toISOString() }
}

/** Formats the vaults of a session, referenced as its creator wrote them. */
export function vaultReferences(vaults: readonly LinkedVault[]): VaultReference[] {
  return vaults.map(({ id, name, by }) => (by === 'id' ? { id } : { name }))
}
