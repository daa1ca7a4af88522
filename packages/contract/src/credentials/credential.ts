import { z } from 'zod'
import { nameOf } from '../common/text.ts'
import { Timestamp } from '../common/time.ts'

const maxValues = 100
const maxKeyLength = 255
const maxValueLength = 64 * 1024
const maxHostLength = 253

export const CredentialName = nameOf(255)

/** The host name of a site, as the address bar displays it. */
export const CredentialDomain = z
  .string()
  .transform((text) => text.trim().toLowerCase())
  .refine(
    (text) =>
      text.length <= maxHostLength &&
      /^(?:[\p{L}\p{N}](?:[\p{L}\p{N}_-]{0,61}[\p{L}\p{N}])?\.)*[\p{L}\p{N}](?:[\p{L}\p{N}_-]{0,61}[\p{L}\p{N}])?$/u.test(
        text,
      ),
    { error: 'must be a host name such as example.com' },
  )
  .meta({ override: { type: 'string', maxLength: maxHostLength } })

const ValueKey = z.string().refine((key) => key.length >= 1 && key.length <= maxKeyLength, {
  error: `must have keys of 1 to ${maxKeyLength} characters`,
})

const Values = z
  .record(ValueKey, z.string().max(maxValueLength))
  .refine((values) => Object.keys(values).length <= maxValues, { error: `must have at most ${maxValues} values` })
  .meta({ description: 'Write-only: no operation returns them.' })

const TotpAlgorithm = z.enum(['SHA1', 'SHA256', 'SHA512'])
const TotpDigits = z.int().min(6).max(8)
const TotpPeriod = z.int().min(10).max(300)

const totpSettings = {
  totp_algorithm: TotpAlgorithm.optional().meta({ description: 'Default: SHA1.' }),
  totp_digits: TotpDigits.optional().meta({ description: 'Default: 6.' }),
  totp_period: TotpPeriod.optional().meta({ description: 'Seconds. Default: 30.' }),
}

/** Base32 as sites display it: in groups, in lower case, with or without padding. */
const TotpSecret = z
  .string()
  .max(1024)
  .transform((text) => text.replaceAll(/[\s-]/g, '').replace(/=+$/, '').toUpperCase())
  .refine((text) => /^[A-Z2-7]*$/.test(text), { error: 'must be base32: the letters A to Z and the digits 2 to 7' })
  .refine((text) => text.length !== 1, { error: 'must have at least 2 characters' })
  .meta({ override: { type: 'string', maxLength: 1024 } })

const SsoProvider = z.string().max(255)

export const CredentialCreateRequest = z.strictObject({
  name: CredentialName,
  domain: CredentialDomain,
  values: Values,
  totp_secret: TotpSecret.optional(),
  ...totpSettings,
  sso_provider: SsoProvider.nullish(),
})
export type CredentialCreateRequest = z.output<typeof CredentialCreateRequest>

export const CredentialUpdateRequest = z.strictObject({
  name: CredentialName.optional(),
  values: Values.optional().meta({ description: 'Merged with the existing values, one by one.' }),
  remove_value_keys: z
    .array(z.string().max(maxKeyLength))
    .max(maxValues)
    .optional()
    .meta({ description: 'Removed before `values` are added.' }),
  totp_secret: TotpSecret.optional().meta({ description: 'An empty text removes it.' }),
  ...totpSettings,
  sso_provider: SsoProvider.nullish().meta({ description: 'An empty text or null removes it.' }),
})
export type CredentialUpdateRequest = z.output<typeof CredentialUpdateRequest>

export const Credential = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    domain: z.string(),
    created_at: Timestamp,
    updated_at: Timestamp,
    has_values: z.boolean(),
    has_totp_secret: z.boolean(),
    value_keys: z.array(z.string()).optional().meta({ description: 'Not in lists.' }),
    sso_provider: z.string().nullable(),
    totp_algorithm: TotpAlgorithm.optional(),
    totp_digits: z.int().optional(),
    totp_period: z.int().optional(),
    totp_code: z.string().optional().meta({ description: 'Only in the response that sets the secret.' }),
    totp_code_expires_at: Timestamp.optional(),
  })
  .meta({ id: 'Credential' })
export type Credential = z.infer<typeof Credential>
