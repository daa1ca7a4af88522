import type { AppVersion, Deployment, Invocation } from '@berth/contract/apps/app.ts'
import type { ListedAppVersion, StoredAppVersion, StoredDeployment } from './deployments/deployment-store.ts'
import type { StoredInvocation } from './invocations/invocation-store.ts'

const region = 'aws.us-east-1a'

export function deploymentRecord(deployment: StoredDeployment): Deployment {
  return {
    id: deployment.id,
    created_at: deployment.created_at.toISOString(),
    updated_at: deployment.updated_at.toISOString(),
    region,
    status: deployment.status,
    ...(deployment.status_reason !== null && { status_reason: deployment.status_reason }),
    entrypoint_rel_path: deployment.entrypoint,
    env_vars: withoutValues(deployment.env_names),
    source_type: deployment.source_url === null ? 'file' : 'github',
    ...(deployment.source_checksum !== null && { source_checksum: deployment.source_checksum }),
    ...(deployment.source_url !== null && { source_url: deployment.source_url }),
    ...(deployment.source_ref !== null && { source_ref: deployment.source_ref }),
    ...(deployment.source_path !== null && { source_path: deployment.source_path }),
  }
}

export function appSummary({ id, app_name, version, actions }: StoredAppVersion) {
  const described = actions.map((name) => ({ name, input_schema: null, output_schema: null }))
  return { id, app_name, version, region, actions: described } as const
}

export function appRecord(version: ListedAppVersion): AppVersion {
  return { ...appSummary(version), deployment: version.deployment_id, env_vars: withoutValues(version.env_names) }
}

export function invocationRecord(invocation: StoredInvocation): Invocation {
  const { id, app_name, version, action_name, status, status_reason, payload, output } = invocation
  return {
    id,
    app_name,
    version,
    action_name,
    status,
    ...(status_reason !== null && { status_reason }),
    ...(payload !== null && { payload }),
    ...(output !== null && { output }),
    started_at: invocation.created_at.toISOString(),
    finished_at: invocation.finished_at?.toISOString() ?? null,
  }
}

function withoutValues(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, '']))
}
