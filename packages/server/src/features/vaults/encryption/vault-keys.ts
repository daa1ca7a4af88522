import type { ProjectId, VaultId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import {
  calculateJwkThumbprint,
  compactDecrypt,
  decodeProtectedHeader,
  exportJWK,
  generateKeyPair,
  importJWK,
} from 'jose'
import type { ProjectSecrets } from '../../../secrets/project-secrets.ts'
import type { VaultKeyPair, VaultWithKeys } from '../vault.ts'

const algorithm = 'ECDH-ES'
const encryption = 'A256GCM'
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Creates the keys of vaults, and decrypts values that clients have encrypted with them. */
export class VaultKeys {
  readonly #secrets: ProjectSecrets

  constructor(secrets: ProjectSecrets) {
    this.#secrets = secrets
  }

  async generate(projectId: ProjectId, vaultId: VaultId): Promise<VaultKeyPair> {
    const { publicKey, privateKey } = await generateKeyPair(algorithm, { crv: 'P-256', extractable: true })
    const { x = '', y = '' } = await exportJWK(publicKey)
    const jwk = { kty: 'EC', crv: 'P-256', x, y } as const
    const kid = await calculateJwkThumbprint(jwk)
    const text = JSON.stringify(await exportJWK(privateKey))
    return {
      publicKey: { kid, jwk },
      sealedPrivateKey: await this.#secrets.seal(projectId, text, contextOf(vaultId)),
    }
  }

  /** Decrypts a compact JWE. `field` is its place in the request. */
  async decrypt(vault: VaultWithKeys, encrypted: string, field: string): Promise<string> {
    const header = headerOf(encrypted)
    if (header?.alg !== algorithm || header.enc !== encryption) {
      throw malformed(field, `must be a compact JWE with ${algorithm} and ${encryption}`)
    }
    if (header.zip !== undefined) throw malformed(field, 'must not be compressed')
    if (!vault.public_key || !vault.sealed_private_key || header.kid !== vault.public_key.kid) {
      throw new BerthError('encryption_key_mismatch', { field })
    }
    const text = await this.#secrets.unseal(vault.project_id, vault.sealed_private_key, contextOf(vault.id))
    const key = await importJWK(JSON.parse(text), algorithm)
    try {
      const { plaintext } = await compactDecrypt(encrypted, key, {
        keyManagementAlgorithms: [algorithm],
        contentEncryptionAlgorithms: [encryption],
      })
      return utf8.decode(plaintext)
    } catch {
      // The cause may quote the submitted value.
      throw malformed(field, 'cannot be decrypted to a text')
    }
  }
}

function contextOf(vaultId: VaultId): string {
  return `private key of vault ${vaultId}`
}

function headerOf(encrypted: string) {
  try {
    return encrypted.split('.').length === 5 ? decodeProtectedHeader(encrypted) : undefined
  } catch {
    return undefined
  }
}

function malformed(field: string, rule: string): BerthError {
  return new BerthError('invalid_request', { reason: `${field}: ${rule}.` })
}
