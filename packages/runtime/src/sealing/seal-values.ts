import type { Sealed, SealingKey } from '@berth/contract/agent/login/sealing-endpoints.ts'
import { CompactEncrypt, importJWK } from 'jose'
import { sealingAlgorithm, sealingEncryption } from './sealing-keys.ts'

/** Encrypts JSON values for the process that made the key. */
export async function sealValues({ key_id, jwk }: SealingKey, values: readonly unknown[]): Promise<Sealed> {
  const key = await importJWK(jwk, sealingAlgorithm)
  const header = { alg: sealingAlgorithm, enc: sealingEncryption }
  const seal = (value: unknown) =>
    new CompactEncrypt(Buffer.from(JSON.stringify(value))).setProtectedHeader(header).encrypt(key)
  return { key_id, values: await Promise.all(values.map(seal)) }
}
