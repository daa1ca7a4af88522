import type { Vault } from '@berth/contract/vaults/vault.ts'
import {
  deleteVault,
  getVault,
  getVaultEncryptionKey,
  listVaults,
  upsertVault,
} from '@berth/contract/vaults/vault-endpoints.ts'
import type { MountForCallers } from '../../access/mount-for-callers.ts'
import type { VaultService } from './vault-service.ts'
import type { StoredVault } from './vault-store.ts'

export function mountVaultRoutes(mount: MountForCallers, { vaults }: { readonly vaults: VaultService }): void {
  mount(upsertVault, async ({ caller, body }) => record(await vaults.upsert(caller.projectId, body.name)))

  mount(listVaults, async ({ caller, query }) => {
    const page = await vaults.list(caller.projectId, query.query, query)
    return { items: page.items.map(record), hasMore: page.hasMore }
  })

  mount(getVault, async ({ caller, params }) => record(await vaults.get(caller.projectId, params.id_or_name)))

  mount(deleteVault, ({ caller, params }) => vaults.delete(caller.projectId, params.id_or_name))

  mount(getVaultEncryptionKey, async ({ caller, params }) => {
    const { kid, jwk } = await vaults.encryptionKey(caller.projectId, params.id_or_name)
    return { alg: 'ECDH-ES' as const, enc: 'A256GCM' as const, kid, jwk }
  })
}

function record({ id, name, created_at, updated_at }: StoredVault): Vault {
  return { id, created_at: created_at.toISOString(), name, updated_at: updated_at.toISOString() }
}
