import type { ReauthReason } from '@berth/contract/managed-auth/connection.ts'
import type { StoredConnection } from './connection-store.ts'
import type { HumanNeed } from './flows/flow-state.ts'
import { versionOf } from './stored-login/stored-login-service.ts'

interface Reauth {
  readonly isPossible: boolean
  readonly reason: ReauthReason
}

const reasonOf: Readonly<Record<HumanNeed, ReauthReason>> = {
  external_action: 'requires_external_action',
  totp: 'requires_totp_without_secret',
  sms_code: 'requires_sms_code',
  email_code: 'requires_email_code',
  code: 'viable_plans_require_external_action',
  mfa_choice: 'viable_plans_require_external_action',
  account_choice: 'viable_plans_require_external_action',
  customer_input: 'requires_customer_input',
}

/** Whether a login can be repeated without a person, with the reason. */
export function reauthOf(connection: StoredConnection): Reauth {
  const { authenticated_at, credential_id, credential_version, credential_provider_id } = connection
  const not = (reason: ReauthReason) => ({ isPossible: false, reason })
  if (authenticated_at === null) return not('no_prior_successful_login')
  const isExternal =
    credential_provider_id !== null && (connection.credential_path !== null || connection.credential_auto)
  if (credential_id === null && !isExternal) return not('no_credential')
  const version = isExternal ? credential_provider_id : versionOf(credential_id ?? '', credential_version ?? 0)
  if (connection.refused_credential !== null && connection.refused_credential === version) return not('no_viable_plans')
  const codes = totpReason(connection, isExternal)
  const needs = (connection.requirements ?? []).filter((need) => need !== 'totp' || codes === undefined)
  const [need] = order.filter((known) => needs.includes(known))
  if (need) return not(reasonOf[need])
  return { isPossible: true, reason: codes ?? (isExternal ? 'external_credential' : 'has_credential') }
}

/** For a login that required TOTP codes. Whether a provider's item has a secret is unknown until it is read. */
function totpReason(
  { requirements, has_totp }: Pick<StoredConnection, 'requirements' | 'has_totp'>,
  isExternal: boolean,
): ReauthReason | undefined {
  if (!requirements?.includes('totp')) return undefined
  if (isExternal) return 'optimistic_totp_attempt'
  return has_totp ? 'totp_reauth_allowed' : undefined
}

const order: readonly HumanNeed[] = [
  'external_action',
  'totp',
  'sms_code',
  'email_code',
  'code',
  'mfa_choice',
  'account_choice',
  'customer_input',
]
