import type { BrowserPoolCreateRequest, BrowserPoolUpdateRequest } from '@berth/contract/browser-pools/browser-pool.ts'
import type { BrowserRequest, Region } from '@berth/contract/browsers/browser.ts'
import type { ExtensionId, ProfileId } from '@berth/contract/common/ids.ts'
import type { PoolConfig, SelectedProxy } from '../../../database/tables.ts'
import { selectTelemetry, updateTelemetry } from '../create/telemetry-selection.ts'

/** The resources that the names in a configuration referred to when it was set. */
export interface ResolvedNames {
  readonly extension_ids: readonly ExtensionId[]
  readonly proxy: SelectedProxy
  /** Null after the profile is deleted: browsers are then built without one. */
  readonly profile_id: ProfileId | null
}

export function initialConfig(request: BrowserPoolCreateRequest): PoolConfig {
  const { timeout_seconds, stealth, headless, kiosk_mode } = request
  return changedConfig({ timeout_seconds, stealth, headless, kiosk_mode }, request, selectTelemetry(request.telemetry))
}

export function updatedConfig(config: PoolConfig, update: BrowserPoolUpdateRequest): PoolConfig {
  return changedConfig(config, update, updateTelemetry(config.telemetry ?? null, update.telemetry))
}

type Changes = Omit<BrowserPoolUpdateRequest, 'discard_all_idle' | 'telemetry' | 'size' | 'name'>

/** Absent values stay unchanged, and empty ones are removed. */
function changedConfig(
  config: PoolConfig,
  changes: Changes,
  telemetry: PoolConfig['telemetry'] | null | undefined,
): PoolConfig {
  const { network } = changes
  return withoutAbsent({
    timeout_seconds: changes.timeout_seconds ?? config.timeout_seconds,
    stealth: changes.stealth ?? config.stealth,
    headless: changes.headless ?? config.headless,
    kiosk_mode: changes.kiosk_mode ?? config.kiosk_mode,
    memory: changes.memory ?? config.memory,
    viewport: changes.viewport ?? config.viewport,
    profile: changes.profile ? profileOf(changes.profile) : config.profile,
    extensions: changes.extensions ? unlessEmpty(changes.extensions) : config.extensions,
    ...proxyOf(config, changes),
    chrome_policy: changes.chrome_policy ? unlessEmpty(changes.chrome_policy) : config.chrome_policy,
    start_url: changes.start_url === undefined ? config.start_url : changes.start_url || undefined,
    telemetry: telemetry === undefined ? config.telemetry : (telemetry ?? undefined),
    network: network ? unlessEmpty(network) : config.network,
  })
}

function profileOf({ id, name }: NonNullable<Changes['profile']>): PoolConfig['profile'] {
  if (id) return { id }
  return name ? { name } : undefined
}

function proxyOf(config: PoolConfig, { proxy, proxy_id }: Changes): Pick<PoolConfig, 'proxy' | 'proxy_id'> {
  if (proxy) return { proxy, proxy_id: undefined }
  if (proxy_id === '') return { proxy: undefined, proxy_id: undefined }
  if (proxy_id) return { proxy: undefined, proxy_id }
  return { proxy: config.proxy, proxy_id: config.proxy_id }
}

function unlessEmpty<Value extends object>(value: Value): Value | undefined {
  return Object.keys(value).length === 0 ? undefined : value
}

/** Absent members are also absent in the record. */
function withoutAbsent(config: PoolConfig): PoolConfig {
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined)) as PoolConfig
}

/** The request for one browser of the pool, with the names as callers wrote them. */
export function namedRequest(config: PoolConfig, region: Region | undefined): BrowserRequest {
  const { telemetry, profile, ...others } = config
  return {
    ...others,
    gpu: false,
    ...(region && { region }),
    ...(profile && { profile: { ...profile, save_changes: false } }),
    ...(telemetry && { telemetry: { enabled: true, browser: telemetry.browser } }),
  } as BrowserRequest
}

/** The same request, with the resources that the names referred to when the configuration was set. */
export function resolvedRequest(
  config: PoolConfig,
  { extension_ids, proxy, profile_id }: ResolvedNames,
): BrowserRequest {
  const { proxy_id: _deprecated, profile: _named, ...others } = namedRequest(config, undefined)
  return {
    ...others,
    extensions: extension_ids.map((id) => ({ id })),
    proxy,
    ...(profile_id && { profile: { id: profile_id, save_changes: false } }),
  }
}
