import type { LoginEvidence, LoginPage } from '@berth/contract/agent/login/login-page.ts'
import type { DeploymentStatus, InvocationStatus } from '@berth/contract/apps/app.ts'
import type { BrowserPoolConfig } from '@berth/contract/browser-pools/browser-pool.ts'
import type { BrowserMemory, Region } from '@berth/contract/browsers/browser.ts'
import type { Tags } from '@berth/contract/browsers/tags.ts'
import type { BrowserTelemetryConfig } from '@berth/contract/browsers/telemetry-config.ts'
import type { ResolvedViewport } from '@berth/contract/browsers/viewport.ts'
import type {
  AnalysisId,
  ApiKeyId,
  AppVersionId,
  AuditEntryId,
  AuthCheckId,
  AuthConnectionId,
  AuthFlowId,
  CredentialId,
  CredentialProviderId,
  DeploymentId,
  ExportDestinationId,
  ExtensionId,
  InvocationId,
  MachineId,
  OrganizationId,
  OtlpDestinationId,
  PoolId,
  ProfileId,
  ProjectId,
  ProxyId,
  ReplayId,
  SearchId,
  SessionId,
  VaultEventId,
  VaultId,
  VaultItemId,
  VaultOperationId,
  VaultProviderConfigId,
  WebhookDeliveryId,
  WebhookId,
} from '@berth/contract/common/ids.ts'
import type { AnalysisStatus } from '@berth/contract/config-registry/config-registry.ts'
import type { ProxyProtocol } from '@berth/contract/egress/egress-settings.ts'
import type {
  ConnectionStatus,
  FlowStatus,
  FlowStep,
  FlowType,
  ManagedAuthBrowserConfig,
} from '@berth/contract/managed-auth/connection.ts'
import type { ProxyType } from '@berth/contract/proxies/proxy.ts'
import type { Targeting } from '@berth/contract/proxies/targeting.ts'
import type { ReplayEndReason } from '@berth/contract/replays/replay.ts'
import type { ItemField } from '@berth/contract/vaults/item-field.ts'
import type { FilledField } from '@berth/contract/vaults/item-operation.ts'
import type { VaultItemStatus } from '@berth/contract/vaults/vault-item.ts'
import type {
  WebhookAttempt,
  WebhookDeliveryStatus,
  WebhookDisabledReason,
  WebhookEventType,
} from '@berth/contract/webhooks/webhook.ts'
import type { ColumnType, Generated } from 'kysely'
import type { AnalysisResult, Configuration, RunOutcome, Visit } from '../features/config-registry/analysis.ts'
import type { FlowOptions, HumanNeed } from '../features/managed-auth/flows/flow-state.ts'
import type { SessionEndReason, SessionState } from '../features/sessions/records/session-state.ts'
import type { VaultOperationState } from '../features/vaults/operations/operation-state.ts'
import type { LinkedVault, VaultPublicKey } from '../features/vaults/vault.ts'
import type { TotpSettings } from '../secrets/totp.ts'

/** Written as JSON text, because the driver would convert a JavaScript array to a PostgreSQL array. */
type Json<Value> = ColumnType<Value, string, string>

export interface Tables {
  organizations: OrganizationTable
  projects: ProjectTable
  api_keys: ApiKeyTable
  request_counts: RequestCountTable
  dashboard_sessions: DashboardSessionTable
  dashboard_links: DashboardLinkTable
  installation: InstallationTable
  credentials: CredentialTable
  audit_entries: AuditEntryTable
  audit_export_destinations: ExportDestinationTable
  otlp_destinations: OtlpDestinationTable
  credential_providers: CredentialProviderTable
  sessions: SessionTable
  reserve_machines: ReserveMachineTable
  proxies: ProxyTable
  profiles: ProfileTable
  extensions: ExtensionTable
  browser_pools: PoolTable
  pool_waiters: PoolWaiterTable
  servers: ServerTable
  shared_blobs: SharedBlobsTable
  config_analyses: ConfigAnalysisTable
  config_runs: ConfigRunTable
  searches: SearchTable
  page_contents: PageContentTable
  auth_connections: AuthConnectionTable
  auth_flows: AuthFlowTable
  auth_checks: AuthCheckTable
  vaults: VaultTable
  vault_items: VaultItemTable
  vault_collections: VaultCollectionTable
  vault_item_events: VaultItemEventTable
  vault_operations: VaultOperationTable
  vault_provider_configs: VaultProviderConfigTable
  replays: ReplayTable
  replay_parts: ReplayPartTable
  downloads: DownloadTable
  download_parts: DownloadPartTable
  deployments: DeploymentTable
  app_versions: AppVersionTable
  invocations: InvocationTable
  app_logs: AppLogTable
  webhooks: WebhookTable
  webhook_deliveries: WebhookDeliveryTable
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

export interface OtlpDestinationTable {
  id: OtlpDestinationId
  organization_id: OrganizationId
  name: string
  endpoint: string
  description: string | null
  header_names: Json<readonly string[]>
  sealed_headers: Buffer
  version: Generated<number>
  consecutive_failures: Generated<number>
  last_error: Generated<string | null>
  last_error_at: Generated<Date | null>
  last_export_at: Generated<Date | null>
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

interface DashboardSessionTable {
  token_hash: Buffer
  key_id: ApiKeyId
  created_at: Date
  expires_at: Date
}

interface DashboardLinkTable {
  code_hash: Buffer
  key_id: ApiKeyId
  expires_at: Date
}

export interface SessionTable {
  id: SessionId
  project_id: ProjectId
  state: SessionState
  driver_id: string
  /** The machine of the session. */
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
  otlp_destination_id: OtlpDestinationId | null
  bound_otlp_destination_id: Generated<OtlpDestinationId | null>
  proxy: Json<SelectedProxy>
  network: ColumnType<SessionNetwork | null, string | null, string | null>
  created_at: Date
  idle_since: Date | null
  deleted_at: Date | null
  uptime_ms: number | null
  standby_since: Date | null
  standby_ms: Generated<number>
  profile_id: ProfileId | null
  profile_save_changes: boolean | null
  keep_downloads: ColumnType<boolean, boolean | undefined, never>
  vaults: ColumnType<readonly LinkedVault[] | null, string | null | undefined, string | null>
  /** The pool that the session was created for. */
  pool_id: Generated<PoolId | null>
  /** The values that a release with reuse restores. */
  pool_defaults: ColumnType<PoolDefaults | null, string | null | undefined, string | null>
  leased_at: Generated<Date | null>
  /** The number of its leases. Tokens of earlier leases are invalid. */
  lease_number: Generated<number>
  /** Null if a caller has ended it, or it has not ended. */
  end_reason: Generated<SessionEndReason | null>
}

/** The values that a lease can change and its release with reuse restores. */
export interface PoolDefaults {
  readonly proxy: SelectedProxy
  readonly network: SessionNetwork | null
  readonly telemetry: BrowserTelemetryConfig | null
}

/** The requested configuration of the pool's browsers, with the defaults filled in. */
export type PoolConfig = Omit<BrowserPoolConfig, 'size' | 'name' | 'fill_rate_per_minute' | 'refresh_on_profile_update'>

export interface PoolTable {
  id: PoolId
  project_id: ProjectId
  name: string | null
  size: number
  fill_rate_per_minute: number
  refresh_on_profile_update: boolean
  config: Json<PoolConfig>
  extension_ids: Json<readonly ExtensionId[]>
  proxy: Json<SelectedProxy>
  profile_id: ProfileId | null
  /** How many browsers may still be built regardless of the fill rate. */
  unpaced_builds: number
  /** The fill rate permits builds while this is less than a minute ahead. */
  next_build_at: Date | null
  /** Changes with every update and flush. Writes and builds that are based on an earlier version are discarded. */
  version: Generated<number>
  created_at: Date
}

interface PoolWaiterTable {
  ticket: Generated<number>
  pool_id: PoolId
  server_id: string
  since: Generated<Date>
}

/** A machine with a browser that has no session yet. */
export interface ReserveMachineTable {
  machine_id: MachineId
  driver_id: string
  kind: string
  ready_at: Date
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
  draining_since: Date | null
  left_at: Date | null
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

export interface AuthConnectionTable {
  id: AuthConnectionId
  project_id: ProjectId
  domain: string
  profile_name: string
  profile_id: ProfileId | null
  login_url: string | null
  credential_id: CredentialId | null
  credential_provider_id: CredentialProviderId | null
  credential_path: string | null
  credential_auto: boolean
  allowed_domains: ColumnType<readonly string[] | null, string | null, string | null>
  health_check_interval: number
  health_checks: boolean
  auto_reauth: boolean
  save_credentials: boolean
  record_session: boolean
  browser: Json<ManagedAuthBrowserConfig>
  status: ConnectionStatus
  last_auth_check_at: Date | null
  authenticated_at: Date | null
  post_login_url: string | null
  evidence: ColumnType<LoginEvidence | null, string | null, string | null>
  requirements: ColumnType<readonly HumanNeed[] | null, string | null, string | null>
  refused_credential: string | null
  next_check_at: Date | null
  version: Generated<number>
  created_at: Date
  updated_at: Date
}

export interface AuthFlowTable {
  id: AuthFlowId
  connection_id: AuthConnectionId
  flow_type: FlowType
  is_attended: boolean
  status: FlowStatus
  step: FlowStep
  server_id: string | null
  session_id: SessionId | null
  options: Json<FlowOptions>
  page: ColumnType<LoginPage | null, string | null | undefined, string | null>
  known_refs: ColumnType<readonly string[], string | undefined, string>
  interaction_id: Generated<string | null>
  sealed_answer: Generated<Buffer | null>
  sealed_inputs: Generated<Buffer | null>
  typed: ColumnType<readonly string[], string | undefined, string>
  acting_on: Generated<string | null>
  requirements: ColumnType<readonly HumanNeed[], string | undefined, string>
  led_to: ColumnType<readonly string[], string | undefined, string>
  website_error: Generated<string | null>
  external_action_message: Generated<string | null>
  error_code: Generated<string | null>
  error_message: Generated<string | null>
  post_login_url: Generated<string | null>
  evidence: ColumnType<LoginEvidence | null, string | null | undefined, string | null>
  sso_provider: Generated<string | null>
  replay_id: Generated<ReplayId | null>
  telemetry_captured: Generated<boolean>
  handoff_hash: Buffer | null
  sealed_handoff: Buffer | null
  handoff_used_at: Generated<Date | null>
  handoff_tries: Generated<number>
  version: Generated<number>
  created_at: Date
  updated_at: Date
  expires_at: Date
  waits_until: Generated<Date | null>
  ended_at: Generated<Date | null>
}

export interface AuthCheckTable {
  id: AuthCheckId
  connection_id: AuthConnectionId
  status: Generated<ConnectionStatus | null>
  previous_status: ConnectionStatus
  error_code: Generated<string | null>
  error_message: Generated<string | null>
  session_id: Generated<SessionId | null>
  replay_id: Generated<ReplayId | null>
  telemetry_captured: Generated<boolean>
  created_at: Date
  ended_at: Generated<Date | null>
}

export interface VaultTable {
  id: VaultId
  project_id: ProjectId
  name: string
  public_key: ColumnType<VaultPublicKey | null, string | null | undefined, string | null>
  sealed_private_key: Generated<Buffer | null>
  created_at: Date
  updated_at: Date
}

export interface VaultItemTable {
  id: VaultItemId
  vault_id: VaultId
  key: string
  status: VaultItemStatus
  description: string | null
  fields: Json<readonly ItemField[]>
  allowed_domains: ColumnType<readonly string[] | null, string | null, string | null>
  sealed_values: Buffer
  sealed_spec_digest: Buffer
  connection_id: Generated<string | null>
  version: Generated<number>
  created_at: Date
  updated_at: Date
}

export interface VaultCollectionTable {
  item_id: VaultItemId
  token_hash: Buffer
  sealed_token: Buffer
  expires_at: Date
}

export interface VaultItemEventTable {
  sequence: Generated<number>
  id: VaultEventId
  item_id: VaultItemId
  name: string
  browser_id: string | null
  data: ColumnType<Record<string, string | number | readonly string[]> | null, string | null, string | null>
  created_at: Date
}

export interface VaultOperationTable {
  id: VaultOperationId
  item_id: VaultItemId
  session_id: SessionId
  type: 'fill' | 'webmcp_invoke'
  state: VaultOperationState
  fields: ColumnType<readonly FilledField[] | null, string | null | undefined, string | null>
  /** After this time, the server that performs it counts as gone. */
  held_until: Date
  created_at: Date
  ended_at: Generated<Date | null>
}

export interface VaultProviderConfigTable {
  id: VaultProviderConfigId
  organization_id: OrganizationId
  provider: 'link' | 'agentcard'
  name: string
  client_id: string
  publishable_key: string | null
  sealed_client_secret: Buffer
  created_at: Date
  updated_at: Date
}

export interface ReplayTable {
  id: ReplayId
  project_id: ProjectId
  session_id: SessionId
  driver_id: string
  head: Buffer
  started_at: Date
  finished_at: Date | null
  end_reason: ReplayEndReason | null
  expires_at: Date | null
}

export interface ReplayPartTable {
  replay_id: ReplayId
  number: number
  blob: string
  size_bytes: number
  duration_ms: number
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
  source_checksum: string | null
  source_blob: string | null
  source_url: string | null
  source_ref: string | null
  source_path: string | null
  sealed_token: Buffer | null
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

export interface DownloadTable {
  session_id: SessionId
  project_id: ProjectId
  name: string
  size_bytes: number
  downloaded_at: Date
  expires_at: Date
}

export interface DownloadPartTable {
  session_id: SessionId
  name: string
  number: number
  blob: string
  size_bytes: number
}

export interface WebhookTable {
  id: WebhookId
  project_id: ProjectId
  url: string
  description: string | null
  event_types: readonly WebhookEventType[] | null
  is_enabled: Generated<boolean>
  disabled_reason: WebhookDisabledReason | null
  disabled_at: Date | null
  failing_since: Date | null
  sealed_secret: Buffer
  sealed_previous_secret: Buffer | null
  previous_secret_expires_at: Date | null
  created_at: Date
  updated_at: Date
}

export interface WebhookDeliveryTable {
  id: WebhookDeliveryId
  webhook_id: WebhookId
  event_id: string
  event_type: string
  payload: string
  status: Generated<WebhookDeliveryStatus>
  attempt_count: Generated<number>
  next_attempt_at: Generated<Date>
  claimed_until: Date | null
  claimed_by: string | null
  attempts: ColumnType<readonly WebhookAttempt[], string | undefined, string>
  redelivery_of: string | null
  created_at: Generated<Date>
}

export interface InstallationTable {
  is_only: Generated<true>
  name: string
  certificate: string
  sealed_key: Buffer
  created_at: Generated<Date>
}
