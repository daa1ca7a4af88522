import type { BrowserMemory, Region } from '@berth/contract/browsers/browser.ts'
import type { Tags } from '@berth/contract/browsers/tags.ts'
import type { BrowserTelemetryConfig } from '@berth/contract/browsers/telemetry-config.ts'
import type { ResolvedViewport } from '@berth/contract/browsers/viewport.ts'
import type {
  ApiKeyId,
  ExtensionId,
  OrganizationId,
  ProfileId,
  ProjectId,
  ProxyId,
  SessionId,
} from '@berth/contract/common/ids.ts'
import type { ProxyProtocol } from '@berth/contract/egress/egress-settings.ts'
import type { ProxyType } from '@berth/contract/proxies/proxy.ts'
import type { Targeting } from '@berth/contract/proxies/targeting.ts'
import type { ColumnType, Generated } from 'kysely'
import type { SessionState } from '../features/sessions/session-state.ts'

/** Written as JSON text: the driver would make a PostgreSQL array of a JavaScript one. */
type Json<Value> = ColumnType<Value, string, string>

export interface Tables {
  organizations: OrganizationTable
  projects: ProjectTable
  api_keys: ApiKeyTable
  sessions: SessionTable
  proxies: ProxyTable
  profiles: ProfileTable
  extensions: ExtensionTable
}

interface OrganizationTable {
  id: OrganizationId
  name: string
  created_at: Date
  sealed_key: Generated<Buffer | null>
}

interface ProjectTable {
  id: ProjectId
  organization_id: OrganizationId
  name: string
  is_default: boolean
  archived_at: Date | null
  created_at: Date
}

interface ApiKeyTable {
  id: ApiKeyId
  organization_id: OrganizationId
  project_id: ProjectId | null
  name: string
  key_hash: Buffer
  created_at: Date
  deleted_at: Date | null
}

export interface SessionTable {
  id: SessionId
  project_id: ProjectId
  state: SessionState
  driver_id: string
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
  network: ColumnType<SessionNetwork | null, string | null, never>
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

/** What a session leaves by; a proxy that was deleted stays selected. */
export type SelectedProxy = { readonly mode: 'direct' | 'default' } | { readonly id: ProxyId }

/** As callers see it. */
export interface SessionNetwork {
  private_hosts?: string[]
  proxy_routes?: { hosts: string[]; proxy: { id: ProxyId } }[]
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

/** Which secrets there are is told; what they are is sealed. */
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
