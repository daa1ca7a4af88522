import { z } from 'zod'
import { idPattern } from '../common/ids.ts'
import { Timestamp } from '../common/time.ts'

const maxVaultsOfSession = 20

const nameRule = 'must have 1 to 255 characters of A-Z, a-z, 0-9, ., _ and -'

/** Also the key of an item. */
export const VaultItemKey = z.string().regex(/^[A-Za-z0-9._-]{1,255}$/, { error: nameRule })

export const VaultName = VaultItemKey.refine((name) => !idPattern.test(name), {
  error: 'must not have the form of an id: a lower case letter and 23 more letters and digits',
})

export const Vault = z
  .object({ id: z.string(), created_at: Timestamp, name: z.string(), updated_at: Timestamp })
  .meta({ id: 'Vault' })
export type Vault = z.infer<typeof Vault>

export const VaultEncryptionKey = z
  .object({
    alg: z.literal('ECDH-ES'),
    enc: z.literal('A256GCM'),
    kid: z.string(),
    jwk: z.object({ kty: z.literal('EC'), crv: z.literal('P-256'), x: z.string(), y: z.string() }),
  })
  .meta({ id: 'VaultEncryptionKey' })
export type VaultEncryptionKey = z.infer<typeof VaultEncryptionKey>

/** A vault that a session may fill from. */
export const VaultReference = z
  .strictObject({ id: z.string().min(1).max(255).optional(), name: z.string().min(1).max(255).optional() })
  .refine(({ id, name }) => (id === undefined) !== (name === undefined), {
    error: 'must have exactly one of id and name',
  })
  .meta({ id: 'VaultReference' })
export type VaultReference = z.infer<typeof VaultReference>

export const VaultReferences = z.array(VaultReference).max(maxVaultsOfSession)
