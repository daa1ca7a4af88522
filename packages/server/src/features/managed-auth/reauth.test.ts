import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CredentialId, CredentialProviderId } from '@berth/contract/common/ids.ts'
import type { StoredConnection } from './connection-store.ts'
import { reauthOf } from './reauth.ts'

const before = {
  authenticated_at: new Date(0),
  credential_path: null,
  credential_auto: false,
  refused_credential: null,
}
const stored = {
  ...before,
  credential_id: 'crd1' as CredentialId,
  credential_version: 2,
  credential_provider_id: null,
  has_totp: false,
}
const external = {
  ...stored,
  credential_id: null,
  credential_provider_id: 'cpr1' as CredentialProviderId,
  credential_auto: true,
}

const cases: readonly (readonly [what: string, Partial<StoredConnection>, isPossible: boolean, reason: string])[] = [
  ['no login yet', { ...stored, authenticated_at: null }, false, 'no_prior_successful_login'],
  ['nothing stored', { ...stored, credential_id: null }, false, 'no_credential'],
  ['a provider without an item', { ...external, credential_auto: false }, false, 'no_credential'],
  ['a stored credential', stored, true, 'has_credential'],
  ['an item of a provider', external, true, 'external_credential'],
  ['a refused credential', { ...stored, refused_credential: 'crd1 2' }, false, 'no_viable_plans'],
  ['a newer credential than the refused one', { ...stored, refused_credential: 'crd1 1' }, true, 'has_credential'],
  ['codes of an authenticator', { ...stored, requirements: ['totp'] }, false, 'requires_totp_without_secret'],
  ['codes with their secret', { ...stored, requirements: ['totp'], has_totp: true }, true, 'totp_reauth_allowed'],
  ['codes that a provider may have', { ...external, requirements: ['totp'] }, true, 'optimistic_totp_attempt'],
  ['a secret that nobody asked for', { ...stored, has_totp: true }, true, 'has_credential'],
  [
    'a refused credential with a secret for codes',
    { ...stored, requirements: ['totp'], has_totp: true, refused_credential: 'crd1 2' },
    false,
    'no_viable_plans',
  ],
  [
    'codes with their secret, and one by SMS',
    { ...stored, requirements: ['totp', 'sms_code'], has_totp: true },
    false,
    'requires_sms_code',
  ],
  ['codes by e-mail', { ...stored, requirements: ['email_code'] }, false, 'requires_email_code'],
  ['a confirmation elsewhere', { ...stored, requirements: ['external_action'] }, false, 'requires_external_action'],
  ['a choice', { ...stored, requirements: ['mfa_choice'] }, false, 'viable_plans_require_external_action'],
  ['what is not stored', { ...stored, requirements: ['customer_input'] }, false, 'requires_customer_input'],
]

for (const [what, connection, isPossible, reason] of cases) {
  test(`${what}: ${reason}`, () => {
    const full = { requirements: null, ...connection } as StoredConnection

    assert.deepEqual(reauthOf(full), { isPossible, reason })
  })
}
