import type { ProjectId, VaultId } from '@berth/contract/common/ids.ts'
import type { VaultEncryptionKey } from '@berth/contract/vaults/vault.ts'

export type VaultPublicKey = Pick<VaultEncryptionKey, 'kid' | 'jwk'>

export interface VaultKeyPair {
  readonly publicKey: VaultPublicKey
  readonly sealedPrivateKey: Buffer
}

/** The part of a vault that its keys need. */
export interface VaultWithKeys {
  readonly id: VaultId
  readonly project_id: ProjectId
  readonly public_key: VaultPublicKey | null
  readonly sealed_private_key: Buffer | null
}

/** A vault that a session was created with. A later vault of the same name is a different one. */
export interface LinkedVault {
  readonly id: VaultId
  readonly name: string
  /** How the creator of the session referred to it. */
  readonly by: 'id' | 'name'
}
