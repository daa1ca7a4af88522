import {
  getOrgEntitlements,
  getOrgLimits,
  type OrgEntitlements,
  type OrgLimits,
  updateOrgLimits,
} from '@berth/contract/organizations/organization-endpoints.ts'
import type { MountForOrganizations } from '../../access/mount-for-callers.ts'
import type { CurrentLimits, LimitService } from './limit-service.ts'

export function mountLimitRoutes(mount: MountForOrganizations, { limits }: { readonly limits: LimitService }): void {
  mount(getOrgLimits, async ({ caller }) => limitsRecord(await limits.read(caller.organizationId)))

  mount(updateOrgLimits, async ({ caller, body }) => {
    const { default_project_max_concurrent_sessions: limit } = body
    await limits.setProjectDefault(caller, limit ?? undefined)
    return limitsRecord(await limits.read(caller.organizationId))
  })

  mount(getOrgEntitlements, async ({ caller }) => entitlements(await limits.read(caller.organizationId)))
}

function limitsRecord({ maxSessions, projectDefault, used, vaults, ...auth }: CurrentLimits): OrgLimits {
  return {
    max_concurrent_sessions: maxSessions,
    default_project_max_concurrent_sessions: projectDefault,
    concurrent_sessions_used: used,
    concurrent_sessions_available: Math.max(0, maxSessions - used),
    auth_connections_used: auth.authConnections,
    max_auth_connections: auth.maxAuthConnections,
    min_health_check_interval_seconds: auth.minHealthCheckSeconds,
    vaults_used: vaults,
    max_vaults: null,
  }
}

function entitlements({
  maxSessions,
  maxInvocations,
  maxInvocationsPerApp,
  maxAuthConnections,
  minHealthCheckSeconds,
}: CurrentLimits): OrgEntitlements {
  const here = { enabled: true }
  const notYet = { enabled: false }
  return {
    plan: { id: 'ENTERPRISE', effective_id: 'ENTERPRISE', is_trialing: false, status: 'ACTIVE', trial_ends_at: null },
    features: {
      browser_extensions: { ...here, max_stored_per_org: null },
      browser_pools: notYet,
      browser_replays: { ...notYet, retention_days: 0 },
      credential_providers: here,
      credentials: here,
      custom_proxies: here,
      file_io: here,
      gpu: here,
      managed_auth: {
        ...here,
        health_check_interval_default_seconds: Math.max(60 * 60, minHealthCheckSeconds),
        health_check_interval_min_seconds: minHealthCheckSeconds,
        health_check_interval_max_seconds: 24 * 60 * 60,
        max_connections: maxAuthConnections,
      },
      managed_proxies: here,
      profiles: here,
      proxy_bypass_hosts: here,
      search: notYet,
      vaults: here,
    },
    limits: {
      max_concurrent_browsers: maxSessions,
      max_concurrent_invocations: maxInvocations,
      default_max_concurrent_invocations_per_app: maxInvocationsPerApp,
      max_vaults: null,
    },
  }
}
