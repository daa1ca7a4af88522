import { z } from 'zod'
import { Timestamp } from '../common/time.ts'
import { defineEndpoint } from '../endpoint.ts'

const tag = 'Organization'

export const OrgLimits = z
  .object({
    max_concurrent_sessions: z.int().meta({ description: 'Concurrent sessions of all projects together.' }),
    default_project_max_concurrent_sessions: z
      .int()
      .nullable()
      .meta({ description: 'Limit of every project that has no limit of its own. Null: no limit.' }),
    concurrent_sessions_used: z.int().nullable(),
    concurrent_sessions_available: z.int().nullable(),
    auth_connections_used: z.int(),
    max_auth_connections: z.int().nullable(),
    min_health_check_interval_seconds: z.int(),
    vaults_used: z.int(),
    max_vaults: z.int().nullable(),
  })
  .meta({ id: 'OrgLimits' })
export type OrgLimits = z.infer<typeof OrgLimits>

const Enabled = z.object({ enabled: z.boolean() })
const planId = z.enum(['FREE', 'HOBBYIST', 'START_UP', 'ENTERPRISE'])

export const OrgEntitlements = z
  .object({
    plan: z.object({
      id: planId,
      effective_id: planId,
      is_trialing: z.boolean(),
      status: z.enum(['NEEDS_PAYMENT_METHOD', 'ACTIVE', 'CANCELED', 'UNPAID']).nullable(),
      trial_ends_at: Timestamp.nullable(),
    }),
    features: z.object({
      browser_extensions: Enabled.extend({ max_stored_per_org: z.int().nullable() }),
      browser_pools: Enabled,
      browser_replays: Enabled.extend({ retention_days: z.int() }),
      credential_providers: Enabled,
      credentials: Enabled,
      custom_proxies: Enabled,
      file_io: Enabled,
      gpu: Enabled,
      managed_auth: Enabled.extend({
        health_check_interval_default_seconds: z.int(),
        health_check_interval_min_seconds: z.int(),
        health_check_interval_max_seconds: z.int(),
        max_connections: z.int().nullable(),
      }),
      managed_proxies: Enabled,
      profiles: Enabled,
      proxy_bypass_hosts: Enabled,
      search: Enabled,
      vaults: Enabled,
    }),
    limits: z.object({
      max_concurrent_browsers: z.int(),
      max_concurrent_invocations: z.int(),
      default_max_concurrent_invocations_per_app: z.int(),
      max_vaults: z.int().nullable(),
    }),
  })
  .meta({ id: 'OrgEntitlements' })
export type OrgEntitlements = z.infer<typeof OrgEntitlements>

export const getOrgLimits = defineEndpoint({
  operationId: 'getOrgLimits',
  method: 'GET',
  path: '/org/limits',
  summary: 'Get the limits of the organization and their use',
  tag,
  access: 'organization',
  reply: OrgLimits,
  status: 200,
  errors: [],
})

export const updateOrgLimits = defineEndpoint({
  operationId: 'updateOrgLimits',
  method: 'PATCH',
  path: '/org/limits',
  summary: 'Change the limit that projects inherit',
  tag,
  access: 'organization',
  body: z.object({
    default_project_max_concurrent_sessions: z
      .int()
      .min(0)
      .nullish()
      .meta({ description: '0 removes it. Absent or null leaves it unchanged.' }),
  }),
  reply: OrgLimits,
  status: 200,
  errors: [],
})

export const getOrgEntitlements = defineEndpoint({
  operationId: 'getOrgEntitlements',
  method: 'GET',
  path: '/org/entitlements',
  summary: 'Get the entitlements of the organization',
  description: 'There are no plans: all features of this version of berth are enabled.',
  tag,
  access: 'organization',
  reply: OrgEntitlements,
  status: 200,
  errors: [],
})
