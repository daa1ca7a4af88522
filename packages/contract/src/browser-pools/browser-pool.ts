import { z } from 'zod'
import {
  BrowserMemory,
  maxTimeoutSeconds,
  minTimeoutSeconds,
  Region,
  SessionName,
  StartUrl,
} from '../browsers/browser.ts'
import { ChromePolicy } from '../browsers/chrome-policy.ts'
import { BrowserNetworkConfig } from '../browsers/network-config.ts'
import { BrowserProxyConfig, checkProxySelection } from '../browsers/proxy-selection.ts'
import { Tags } from '../browsers/tags.ts'
import { BrowserTelemetryConfig, BrowserTelemetryRequestConfig } from '../browsers/telemetry-config.ts'
import { BrowserViewport } from '../browsers/viewport.ts'
import { idPattern } from '../common/ids.ts'
import { Timestamp } from '../common/time.ts'
import { Unsupported } from '../common/unsupported.ts'
import { ExtensionReference, maxExtensionsOfSession } from '../extensions/extension.ts'

/** Numbers that the database stores as 32-bit integers, and products of two of them as 64-bit ones. */
const maxSize = 1_000_000
const maxFillRate = 1_000_000

export const defaultFillRatePerMinute = 25
const defaultPoolTimeoutSeconds = 600

/** Excludes names that look like an id, which lookups could not distinguish. */
const PoolName = SessionName.refine((name) => !idPattern.test(name), { error: 'cannot have the shape of an id' })

const Size = z.int().min(1).max(maxSize)
const FillRate = z.int().min(0).max(maxFillRate)
const TimeoutSeconds = z.int().min(minTimeoutSeconds).max(maxTimeoutSeconds)
const Extensions = z.array(ExtensionReference).max(maxExtensionsOfSession)
const Memory = z.enum(['1GiB', '2GiB', '8GiB', '16GiB'])

const PoolProfile = z
  .object({
    id: z.string().min(1).max(255).optional(),
    name: z.string().min(1).max(255).optional(),
    save_changes: z.boolean().optional().meta({ description: 'Ignored: browsers of a pool save no changes.' }),
  })
  .refine(hasOneSelector, { error: 'must have exactly one of id and name' })
  .meta({ id: 'BrowserPoolProfile' })

const PoolProfileUpdate = z
  .object({
    id: z.string().max(255).optional(),
    name: z.string().max(255).optional(),
    save_changes: z.boolean().optional().meta({ description: 'Ignored.' }),
  })
  .refine(hasOneSelector, { error: 'must have exactly one of id and name' })
  .meta({ id: 'BrowserPoolProfileUpdate' })

/** Telemetry as for sessions, but pools and leases cannot be exported. */
const PoolTelemetry = BrowserTelemetryRequestConfig.refine((telemetry) => telemetry.export === undefined, {
  path: ['export'],
  error: 'is not supported for browser pools',
})

const PoolNetwork = BrowserNetworkConfig.superRefine((network, context) => {
  for (const field of ['proxy_routes', 'allowed_hosts'] as const) {
    if (network[field] === undefined) continue
    context.addIssue({ code: 'custom', path: [field], message: 'is not supported for browser pools' })
  }
})

/** Settings of sessions that pools do not support. */
const unsupported = {
  gpu: z.literal(false, { error: 'is not available in browser pools' }).optional(),
  disable_default_proxy: Unsupported,
  location: Unsupported,
  vaults: Unsupported,
  video_memory: Unsupported,
}

/** The effective configuration of a pool. References are kept as the caller wrote them. */
export const BrowserPoolConfig = z
  .object({
    size: z.int(),
    name: z.string().optional(),
    fill_rate_per_minute: z.int(),
    timeout_seconds: z.int(),
    stealth: z.boolean(),
    headless: z.boolean(),
    kiosk_mode: z.boolean(),
    memory: BrowserMemory.optional(),
    viewport: BrowserViewport.optional(),
    profile: z.object({ id: z.string().optional(), name: z.string().optional() }).optional(),
    refresh_on_profile_update: z.boolean(),
    extensions: z.array(ExtensionReference).optional(),
    proxy: BrowserProxyConfig.optional(),
    proxy_id: z.string().optional(),
    chrome_policy: z
      .record(z.string(), z.json())
      .meta({ override: { type: 'object', additionalProperties: true } })
      .optional(),
    start_url: z.string().optional(),
    telemetry: BrowserTelemetryConfig.optional(),
    network: BrowserNetworkConfig.optional(),
  })
  .meta({ id: 'BrowserPoolConfig' })
export type BrowserPoolConfig = z.infer<typeof BrowserPoolConfig>

/** A fixed number of identical browsers that are ready to be leased. */
export const BrowserPool = z
  .object({
    id: z.string(),
    name: z.string().optional(),
    available_count: z.int().meta({ description: 'Browsers that are ready.' }),
    acquired_count: z.int().meta({ description: 'Browsers that are leased.' }),
    created_at: Timestamp,
    browser_pool_config: BrowserPoolConfig,
    extension_ids: z.array(z.string()),
    profile_id: z.string().optional(),
    region: Region,
  })
  .meta({ id: 'BrowserPool' })
export type BrowserPool = z.infer<typeof BrowserPool>

export const BrowserPoolCreateRequest = z
  .object({
    ...unsupported,
    size: Size.meta({ description: 'Counts fully as sessions of the project, leased or not.' }),
    name: PoolName.optional(),
    fill_rate_per_minute: FillRate.default(defaultFillRatePerMinute).meta({
      description: 'Percentage of the size that is replaced per minute, at least one browser. 0: none.',
    }),
    timeout_seconds: TimeoutSeconds.default(defaultPoolTimeoutSeconds).meta({
      description: 'Seconds after the last activity until a leased browser is deleted.',
    }),
    stealth: z.boolean().default(false),
    headless: z.boolean().default(false),
    kiosk_mode: z.boolean().default(false),
    memory: Memory.optional(),
    viewport: BrowserViewport.optional(),
    profile: PoolProfile.nullish(),
    refresh_on_profile_update: z
      .boolean()
      .optional()
      .meta({ description: 'Replace ready browsers when the profile is saved. Default: true with a profile.' }),
    extensions: Extensions.nullish(),
    proxy: BrowserProxyConfig.optional(),
    proxy_id: z.string().nullish(),
    chrome_policy: ChromePolicy.optional(),
    start_url: StartUrl.optional(),
    telemetry: PoolTelemetry.nullish(),
    network: PoolNetwork.optional(),
    region: Region.optional(),
  })
  .superRefine((request, context) => checkProxySelection(selectionOf(request), context))
  .superRefine(({ profile, refresh_on_profile_update: refreshes }, context) => {
    if (!refreshes || profile) return
    context.addIssue({ code: 'custom', path: ['refresh_on_profile_update'], message: 'needs a profile' })
  })
  .meta({ id: 'BrowserPoolCreateRequest' })
export type BrowserPoolCreateRequest = z.infer<typeof BrowserPoolCreateRequest>

/** Changes of a pool. Absent fields stay unchanged. */
export const BrowserPoolUpdateRequest = z
  .object({
    size: Size.optional(),
    name: PoolName.or(z.literal('')).optional().meta({ description: 'An empty string changes nothing.' }),
    fill_rate_per_minute: FillRate.optional(),
    timeout_seconds: TimeoutSeconds.optional(),
    stealth: z.boolean().optional(),
    headless: z.boolean().optional(),
    kiosk_mode: z.boolean().optional(),
    memory: Memory.optional(),
    viewport: BrowserViewport.optional(),
    profile: PoolProfileUpdate.nullish().meta({ description: 'An empty id or name removes the profile.' }),
    refresh_on_profile_update: z.boolean().optional(),
    extensions: Extensions.nullish().meta({ description: 'An empty list removes the extensions.' }),
    proxy: BrowserProxyConfig.optional(),
    proxy_id: z.string().nullish().meta({ description: 'An empty string removes the proxy.' }),
    chrome_policy: ChromePolicy.optional().meta({ description: 'An empty object removes the policies.' }),
    start_url: StartUrl.optional().meta({ description: 'An empty string removes the page.' }),
    telemetry: PoolTelemetry.nullish(),
    network: PoolNetwork.optional().meta({ description: 'An empty object restores the defaults.' }),
    region: Region.optional(),
    discard_all_idle: z
      .boolean()
      .default(false)
      .meta({ description: 'Replace all ready browsers now. Otherwise they keep the configuration they have.' }),
    expected_network: Unsupported,
    ...unsupported,
  })
  .superRefine((request, context) => checkProxySelection(selectionOf(request), context))
  .meta({ id: 'BrowserPoolUpdateRequest' })
export type BrowserPoolUpdateRequest = z.infer<typeof BrowserPoolUpdateRequest>

export const BrowserPoolAcquireRequest = z
  .object({
    acquire_timeout_seconds: z.int().min(0).optional().meta({
      description: 'How long to wait for a browser, at most 50 seconds. Default: the time in which the pool is filled.',
    }),
    name: SessionName.optional().meta({ description: 'Name of the session until its release.' }),
    tags: Tags.optional().meta({ description: 'Tags of the session until its release.' }),
    start_url: StartUrl.optional(),
    telemetry: PoolTelemetry.nullish(),
    profile: Unsupported,
  })
  .meta({ id: 'BrowserPoolAcquireRequest' })
export type BrowserPoolAcquireRequest = z.infer<typeof BrowserPoolAcquireRequest>

export const BrowserPoolReleaseRequest = z
  .object({
    session_id: z.string().min(1).max(255),
    reuse: z
      .boolean()
      .default(true)
      .meta({ description: 'Keep the browser as it is for the next caller. Otherwise it is replaced by a new one.' }),
  })
  .meta({ id: 'BrowserPoolReleaseRequest' })

function selectionOf(request: {
  readonly proxy?: BrowserProxyConfig | undefined
  readonly proxy_id?: string | null | undefined
}) {
  return { proxy: request.proxy, proxy_id: request.proxy_id }
}

function hasOneSelector({
  id,
  name,
}: {
  readonly id?: string | undefined
  readonly name?: string | undefined
}): boolean {
  return (id === undefined) !== (name === undefined)
}
