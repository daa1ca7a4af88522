import type { Credential } from '@berth/contract/credentials/credential.ts'
import type { WrittenCredential } from './credential-service.ts'
import type { StoredCredential } from './credential-store.ts'

/** Formats a credential as in lists. */
export function listedCredential(credential: StoredCredential): Credential {
  const { totp } = credential
  return {
    id: credential.id,
    name: credential.name,
    domain: credential.domain,
    created_at: credential.created_at.toISOString(),
    updated_at: credential.updated_at.toISOString(),
    has_values: credential.value_keys.length > 0,
    has_totp_secret: totp !== null,
    sso_provider: credential.sso_provider,
    ...(totp && { totp_algorithm: totp.algorithm, totp_digits: totp.digits, totp_period: totp.period }),
  }
}

export function credentialRecord(credential: StoredCredential): Credential {
  return { ...listedCredential(credential), value_keys: [...credential.value_keys] }
}

export function writtenCredential({ credential, totp }: WrittenCredential): Credential {
  return {
    ...credentialRecord(credential),
    ...(totp && { totp_code: totp.code, totp_code_expires_at: totp.expiresAt.toISOString() }),
  }
}
