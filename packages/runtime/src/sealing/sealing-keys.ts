import { randomUUID } from 'node:crypto'
import type { Sealed, SealingKey } from '@berth/contract/agent/login/sealing-endpoints.ts'
// Imported by path: the whole library would cost several megabytes in each session that is filled.
import { compactDecrypt } from 'jose/jwe/compact/decrypt'
import { exportJWK } from 'jose/key/export'
import { generateKeyPair } from 'jose/key/generate/keypair'

export const sealingAlgorithm = 'ECDH-ES'
export const sealingEncryption = 'A256GCM'

/** When there are more, the oldest unused key is removed. */
const maxKeys = 16

/**
 * Keys for values that must not stay in the memory of a process. Each key decrypts one set of values and is then
 * deleted, so encrypted texts that remain in memory are useless.
 */
export class SealingKeys {
  readonly #keys = new Map<string, CryptoKey>()

  async make(): Promise<SealingKey> {
    const { publicKey, privateKey } = await generateKeyPair(sealingAlgorithm, { crv: 'P-256' })
    const { x = '', y = '' } = await exportJWK(publicKey)
    const key_id = randomUUID()
    const [oldest] = this.#keys.keys()
    if (oldest !== undefined && this.#keys.size >= maxKeys) this.#keys.delete(oldest)
    this.#keys.set(key_id, privateKey)
    return { key_id, jwk: { kty: 'EC', crv: 'P-256', x, y } }
  }

  /** Returns the JSON texts as bytes, which the caller overwrites after use. Works once for each key. */
  async open({ key_id, values }: Sealed): Promise<readonly Uint8Array[]> {
    const key = this.#keys.get(key_id)
    this.#keys.delete(key_id)
    if (!key) throw new Error('the values are encrypted for an unknown key')
    const options = {
      keyManagementAlgorithms: [sealingAlgorithm],
      contentEncryptionAlgorithms: [sealingEncryption],
    }
    return Promise.all(values.map(async (value) => (await compactDecrypt(value, key, options)).plaintext))
  }
}
