import {
  deleteVault,
  getVault,
  getVaultEncryptionKey,
  listVaults,
  upsertVault,
} from '@berth/contract/vaults/vault-endpoints.ts'
import type { MountForCallers } from '../../access/mount-for-callers.ts'
import { vaultRecord } from './vault-record.ts'
import type { VaultService } from './vault-service.ts'

export function mountVaultRoutes(mount: MountForCallers, { vaults }: { readonly vaults: VaultService }): void {
  mount(upsertVault, async ({ caller, body, setStatus }) => {
    const { vault, isNew } = await vaults.upsert(caller.projectId, body.name)
    if (!isNew) setStatus(200)
    return vaultRecord(vault)
  })

  mount(listVaults, async ({ caller, query }) => {
    const page = await vaults.list(caller.projectId, query.query, query)
    return { items: page.items.map(vaultRecord), hasMore: page.hasMore }
  })

  mount(getVault, async ({ caller, params }) => vaultRecord(await vaults.get(caller.projectId, params.id_or_name)))

  mount(deleteVault, ({ caller, params }) => vaults.delete(caller.projectId, params.id_or_name))

  mount(getVaultEncryptionKey, async ({ caller, params }) => {
    const { kid, jwk } = await vaults.encryptionKey(caller.projectId, params.id_or_name)
    return { alg: 'ECDH-ES' as const, enc: 'A256GCM' as const, kid, jwk }
  })
}
