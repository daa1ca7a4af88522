import type { DeploymentStatus, InvocationStatus } from '@berth/contract/apps/app.ts'
import type { BrowserMemory, Region } from '@berth/contract/browsers/browser.ts'
import type { Tags } from '@berth/contract/browsers/tags.ts'
import type { BrowserTelemetryConfig } from '@berth/contract/browsers/telemetry-config.ts'
import type { ResolvedViewport } from '@berth/contract/browsers/viewport.ts'
import type {
  AnalysisId,
  ApiKeyId,
  AppVersionId,
  AuditEntryId,
  CredentialId,
  CredentialProviderId,
  DeploymentId,
  ExportDestinationId,
  ExtensionId,
  InvocationId,
  MachineId,
  OrganizationId,
  ProfileId,
  ProjectId,
  ProxyId,
  SearchId,
  SessionId,
} from '@berth/contract/common/ids.ts'
import type { AnalysisStatus } from '@berth/contract/config-registry/config-registry.ts'
import type { ProxyProtocol } from '@berth/contract/egress/egress-settings.ts'
import type { ProxyType } from '@berth/contract/proxies/proxy.ts'
import type { Targeting } from '@berth/contract/proxies/targeting.ts'
import type { ColumnType, Generated } from 'kysely'
import type { AnalysisResult, Configuration, RunOutcome, Visit } from '../features/config-registry/analysis.ts'
import type { TotpSettings } from '../features/credentials/totp.ts'
import type { SessionState } from '../features/sessions/records/session-state.ts'

/** Written as JSON text, because the driver would convert a JavaScript array to a PostgreSQL array. */
type Json<Value> = ColumnType<Value, string, string>

export interface Tables {
  organizations: OrganizationTable
  projects: ProjectTable
  api_keys: ApiKeyTable
  request_counts: RequestCountTable
  credentials: CredentialTable
  audit_entries: AuditEntryTable
  audit_export_destinations: ExportDestinationTable
  credential_providers: CredentialProviderTable
  sessions: SessionTable
  proxies: ProxyTable
  profiles: ProfileTable
  extensions: ExtensionTable
  servers: ServerTable
  shared_blobs: SharedBlobsTable
  config_analyses: ConfigAnalysisTable
  config_runs: ConfigRunTable
  searches: SearchTable
  page_contents: PageContentTable
  deployments: DeploymentTable
  app_versions: AppVersionTable
  invocations: InvocationTable
  app_logs: AppLogTable
}

export interface OrganizationTable {
  id: OrganizationId
  name: string
  created_at: Date
  sealed_key: Generated<Buffer | null>
  max_concurrent_sessions: number | null
  default_project_max_concurrent_sessions: number | null
}

export interface CredentialTable {
  id: CredentialId
  project_id: ProjectId
  name: string
  domain: string
  sso_provider: string | null
  value_keys: Json<readonly string[]>
  totp: ColumnType<TotpSettings | null, string | null, string | null>
  sealed_secrets: Buffer
  version: Generated<number>
  created_at: Date
  updated_at: Date
}

export interface CredentialProviderTable {
  id: CredentialProviderId
  organization_id: OrganizationId
  provider_type: 'onepassword'
  name: string
  enabled: Generated<boolean>
  priority: Generated<number>
  cache_ttl_seconds: number
  sealed_token: Buffer
  created_at: Date
  updated_at: Date
}

interface AuditEntryTable {
  sequence: Generated<number>
  event_id: AuditEntryId
  organization_id: OrganizationId
  occurred_at: Date
  service: string
  auth_strategy: string
  user_id: string
  email: string
  status: number
  method: string
  path: string
  route: string
  domain: string
  duration_ms: number
  client_ip: string
  user_agent: string
}

export interface ExportDestinationTable {
  id: ExportDestinationId
  organization_id: OrganizationId
  region: string
  bucket: string
  prefix: string
  role_arn: string
  kms_key_id: string | null
  external_id: string
  status: 'active' | 'paused'
  exported_sequence: number | null
  version: Generated<number>
  consecutive_failures: Generated<number>
  last_error: string | null
  last_error_at: Date | null
  last_success_at: Date | null
  next_attempt_at: Date | null
  created_at: Date
  updated_at: Date
}

interface RequestCountTable {
  organization_id: OrganizationId
  operation: string
  window_start: Date
  requests: number
}

export interface ProjectTable {
  id: ProjectId
  organization_id: OrganizationId
  name: string
  is_default: boolean
  archived_at: Date | null
  created_at: Date
  updated_at: Generated<Date>
  max_concurrent_sessions: number | null
  max_concurrent_invocations: number | null
}

export interface ApiKeyTable {
  id: ApiKeyId
  organization_id: OrganizationId
  project_id: ProjectId | null
  name: string
  key_hash: Buffer
  masked_key: Generated<string>
  created_by_id: ApiKeyId | OrganizationId
  created_by_name: string | null
  created_at: Date
  expires_at: Date | null
  lifetime_days: number | null
  deleted_at: Date | null
}

export interface SessionTable {
  id: SessionId
  project_id: ProjectId
  state: SessionState
  driver_id: string
  /** Whatever runs it goes by this id. */
  machine_id: MachineId
  name: string | null
  tags: Json<Tags>
  headless: boolean
  stealth: boolean
  gpu: boolean
  kiosk_mode: boolean
  memory: BrowserMemory
  region: Region
  timeout_seconds: number
  viewport: Json<ResolvedViewport>
  start_url: string | null
  chrome_policy: Json<Record<string, unknown>>
  invocation_id: string | null
  telemetry: ColumnType<BrowserTelemetryConfig | null, string | null, string | null>
  proxy: Json<SelectedProxy>
  network: ColumnType<SessionNetwork | null, string | null, string | null>
  created_at: Date
  idle_since: Date | null
  deleted_at: Date | null
  uptime_ms: number | null
  profile_id: ProfileId | null
  profile_save_changes: boolean | null
}

export interface ProfileTable {
  id: ProfileId
  project_id: ProjectId
  name: string | null
  created_at: Date
  updated_at: Date
  last_used_at: Date | null
  state_blob: string | null
  state_ended_at: Date | null
}

/** The proxy of a session. A deleted proxy stays selected. */
export type SelectedProxy = { readonly mode: 'direct' | 'default' } | { readonly id: ProxyId }

/** In the form that callers see. */
export interface SessionNetwork {
  private_hosts?: string[]
  proxy_routes?: { hosts: string[]; proxy: { id: ProxyId } }[]
  allowed_hosts?: string[]
}

export interface ProxyTable {
  id: ProxyId
  project_id: ProjectId
  type: ProxyType
  name: string | null
  name_key: string | null
  protocol: ProxyProtocol
  bypass_hosts: Json<readonly string[]>
  config: Json<StoredProxyConfig>
  sealed_secrets: Buffer | null
  status: 'available' | 'unavailable' | null
  last_checked: Date | null
  ip_address: string | null
  created_at: Date
  deleted_at: Date | null
}

/** Records which secrets exist. Their values are sealed. */
export interface StoredProxyConfig extends Targeting {
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly username?: string | undefined
  readonly has_password?: boolean
  readonly has_ca_bundle?: boolean
}

export interface ExtensionTable {
  id: ExtensionId
  project_id: ProjectId
  name: string | null
  size_bytes: number
  checksum: string | null
  blob: string
  policy_id: string | null
  created_at: Date
  last_used_at: Date | null
}

interface ServerTable {
  id: string
  up_since: Date
  seen_at: Date
  address: string | null
  driver: string | null
  key_check: string | null
  sessions: Generated<number>
  free_sessions: number | null
  free_memory_bytes: number | null
}

interface SharedBlobsTable {
  is_only: Generated<boolean>
  marker: string
}

export interface ConfigAnalysisTable {
  id: AnalysisId
  project_id: ProjectId
  url: string
  target: string
  host: string
  domain: string
  allowed_proxy_countries: ColumnType<readonly string[] | null, string | null, never>
  intent: string | null
  status: AnalysisStatus
  failure: ColumnType<{ code: string; message: string } | null, string | null, string | null>
  result: ColumnType<AnalysisResult | null, string | null, string | null>
  recommended_config_label: string | null
  success_rate: number | null
  attempts: Generated<number>
  created_at: Date
  expires_at: Date
  last_requested_at: Date
  cancel_requested_at: Date | null
  finished_at: Date | null
}

export interface ConfigRunTable {
  id: Generated<number>
  analysis_id: AnalysisId
  target: string
  host: string
  domain: string
  configuration_key: string
  configuration: Json<Configuration>
  visit: ColumnType<Visit | null, string | null, string | null>
  outcome: RunOutcome | null
  observed_at: Date
}

export interface SearchTable {
  id: SearchId
  project_id: ProjectId
  sealed_record: Buffer
  created_at: Date
  expires_at: Date
}

export interface PageContentTable {
  project_id: ProjectId
  page_key: Buffer
  sealed_content: Buffer
  fetched_at: Date
}

export interface DeploymentTable {
  id: DeploymentId
  project_id: ProjectId
  status: DeploymentStatus
  status_reason: string | null
  version: string
  is_forced: boolean
  entrypoint: string
  env_names: Json<readonly string[]>
  sealed_env: Buffer
  source_checksum: string
  source_blob: string
  dependencies_blob: string | null
  dependencies_key: string | null
  attempts: Generated<number>
  key_id: ApiKeyId | null
  sealed_key: Buffer | null
  created_at: Date
  updated_at: Date
  deleted_at: Date | null
}

export interface AppVersionTable {
  id: AppVersionId
  deployment_id: DeploymentId
  app_name: string
  version: string
  actions: Json<readonly string[]>
  created_at: Date
  live_project_id: ProjectId | null
}

export interface InvocationTable {
  id: InvocationId
  project_id: ProjectId
  deployment_id: DeploymentId
  app_name: string
  version: string
  action_name: string
  status: InvocationStatus
  status_reason: string | null
  payload: string | null
  output: string | null
  server_id: string
  created_at: Date
  deadline: Date
  finished_at: Date | null
}

export interface AppLogTable {
  id: Generated<number>
  deployment_id: DeploymentId
  invocation_id: InvocationId | null
  message: string
  created_at: Date
}
