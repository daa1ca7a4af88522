import { z } from 'zod'

/**
 * Ids have 24 characters, `^[a-z][a-z0-9]{23}$`: three letters for the kind, eight for the time, thirteen random ones.
 * Official clients distinguish ids from names by that pattern, so the prefix has no underscore.
 */
export const idPattern = /^[a-z][a-z0-9]{23}$/

export type MachineId = string & { readonly idOf: 'machine' }
export type SessionId = string & { readonly idOf: 'session' }
export type ProjectId = string & { readonly idOf: 'project' }
export type OrganizationId = string & { readonly idOf: 'organization' }
export type ExtensionId = string & { readonly idOf: 'extension' }
export type ProfileId = string & { readonly idOf: 'profile' }
export type ApiKeyId = string & { readonly idOf: 'api-key' }
export type ProxyId = string & { readonly idOf: 'proxy' }
export type CredentialProviderId = string & { readonly idOf: 'credential-provider' }
export type AuditEntryId = string & { readonly idOf: 'audit-entry' }
export type ExportDestinationId = string & { readonly idOf: 'export-destination' }
export type OtlpDestinationId = string & { readonly idOf: 'otlp-destination' }
export type AnalysisId = string & { readonly idOf: 'analysis' }
export type SearchId = string & { readonly idOf: 'search' }
export type PoolId = string & { readonly idOf: 'pool' }
export type VaultId = string & { readonly idOf: 'vault' }
export type VaultItemId = string & { readonly idOf: 'vault-item' }
export type VaultEventId = string & { readonly idOf: 'vault-event' }
export type VaultOperationId = string & { readonly idOf: 'vault-operation' }
export type VaultProviderConfigId = string & { readonly idOf: 'vault-provider-config' }
export type ReplayId = string & { readonly idOf: 'replay' }
export type DeploymentId = string & { readonly idOf: 'deployment' }
export type AppVersionId = string & { readonly idOf: 'app-version' }
export type InvocationId = string & { readonly idOf: 'invocation' }
export type WebhookId = string & { readonly idOf: 'webhook' }
export type WebhookDeliveryId = string & { readonly idOf: 'webhook-delivery' }
export type AuthConnectionId = string & { readonly idOf: 'auth-connection' }
export type AuthFlowId = string & { readonly idOf: 'auth-flow' }
export type AuthCheckId = string & { readonly idOf: 'auth-check' }
export type CredentialId = string & { readonly idOf: 'credential' }

const idPrefixes = {
  session: 'brw',
  machine: 'mch',
  project: 'prj',
  organization: 'org',
  'api-key': 'key',
  profile: 'prf',
  extension: 'ext',
  proxy: 'prx',
  pool: 'bpl',
  replay: 'rpl',
  search: 'srh',
  credential: 'crd',
  analysis: 'ana',
  deployment: 'dpl',
  'app-version': 'apv',
  invocation: 'inv',
  'export-destination': 'exd',
  'otlp-destination': 'otd',
  'audit-entry': 'aud',
  'credential-provider': 'cpv',
  vault: 'vlt',
  'vault-item': 'vit',
  'vault-event': 'vev',
  'vault-operation': 'vop',
  'vault-provider-config': 'vpc',
  webhook: 'whk',
  'webhook-delivery': 'whd',
  'auth-connection': 'acn',
  'auth-flow': 'afl',
  'auth-check': 'ack',
} as const
type IdKind = keyof typeof idPrefixes

const timeDigits = 8 // Milliseconds in base 36 have eight digits until the year 2059.
const randomDigits = 13 // Enough for 64 random bits and some increments.

let last = { time: 0, random: 0n }

/** Creates an id. Ids of one process sort by creation, also within a millisecond. */
export function newId<Kind extends IdKind>(kind: Kind, now: Date): string & { readonly idOf: Kind } {
  const time = now.getTime()
  // Later ids of the same millisecond increase by steps that cannot be guessed.
  const random = time === last.time ? last.random + 1n + BigInt(randomStep()) : randomStart()
  last = { time, random }
  const digits = [time.toString(36).padStart(timeDigits, '0'), random.toString(36).padStart(randomDigits, '0')]
  return `${idPrefixes[kind]}${digits.join('')}` as string & { readonly idOf: Kind }
}

function randomStart(): bigint {
  return crypto.getRandomValues(new BigUint64Array(1))[0] ?? 0n
}

function randomStep(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0
}

/** A path parameter that accepts an id or a name. Ids are looked up first. */
export const IdOrName = z.string().min(1).max(255).meta({ description: 'Session id or name.' })
