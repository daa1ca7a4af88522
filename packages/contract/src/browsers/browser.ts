import { z } from 'zod'
import { Timestamp } from '../common/time.ts'
import { Unsupported } from '../common/unsupported.ts'
import { ExtensionReference, maxExtensionsOfSession } from '../extensions/extension.ts'
import { BrowserProfile, Profile } from '../profiles/profile.ts'
import { VaultReferences } from '../vaults/vault.ts'
import { ChromePolicy } from './chrome-policy.ts'
import { BrowserNetworkConfig, checkStartUrl } from './network-config.ts'
import { BrowserProxy, checkProxySelection, proxySelection } from './proxy-selection.ts'
import { Tags } from './tags.ts'
import { BrowserTelemetryConfig, BrowserTelemetryRequestConfig } from './telemetry-config.ts'
import { BrowserViewport } from './viewport.ts'

export const Region = z.enum(['us-east', 'us-west', 'eu-west', 'ap-southeast']).meta({ id: 'Region' })
export type Region = z.infer<typeof Region>

export const BrowserMemory = z.enum(['1GiB', '2GiB', '6GiB', '8GiB', '16GiB']).meta({ id: 'BrowserMemory' })
export type BrowserMemory = z.infer<typeof BrowserMemory>

export const SessionName = z.string().regex(/^[a-zA-Z0-9._-]{1,255}$/, {
  error: 'must have 1 to 255 characters out of letters, digits and . _ -',
})

export const StartUrl = z.string().max(2048, { error: 'must have at most 2048 characters' })

export const minTimeoutSeconds = 10
export const maxTimeoutSeconds = 72 * 60 * 60
export const defaultTimeoutSeconds = 60

/** A session in the form that callers see. */
export const Browser = z
  .object({
    session_id: z.string(),
    created_at: Timestamp,
    cdp_ws_url: z.string(),
    webdriver_ws_url: z.string(),
    base_url: z.string(),
    browser_live_view_url: z.string().optional(),
    name: z.string().optional(),
    region: Region,
    stealth: z.boolean(),
    captcha_solver: z
      .literal(true)
      .optional()
      .describe('Whether a service of the operator solves captchas for this session. Absent when none does.'),
    headless: z.boolean(),
    gpu: z.boolean(),
    kiosk_mode: z.boolean(),
    memory: BrowserMemory,
    timeout_seconds: z.int(),
    viewport: BrowserViewport,
    start_url: z.string().optional(),
    tags: Tags.optional(),
    chrome_policy: z
      .record(z.string(), z.json())
      .meta({ override: { type: 'object', additionalProperties: true } })
      .optional(),
    pool: z
      .object({ id: z.string(), name: z.string().optional() })
      .meta({ id: 'BrowserPoolRef', description: 'The pool that the session is leased from.' })
      .optional(),
    profile: Profile.optional(),
    profile_save_changes: z.boolean().optional().meta({ description: 'Absent without a profile.' }),
    keep_downloads: z.boolean().optional().meta({ description: 'Absent when they are not kept.' }),
    proxy: BrowserProxy,
    proxy_id: z.string().optional().meta({ deprecated: true }),
    disable_default_proxy: z.boolean().meta({ deprecated: true }),
    network: BrowserNetworkConfig.optional(),
    vaults: VaultReferences.optional(),
    telemetry: BrowserTelemetryConfig.nullable().meta({ description: 'Null when nothing is captured.' }),
    usage: z.object({ uptime_ms: z.int() }).meta({ id: 'BrowserUsage' }),
    deleted_at: Timestamp.optional(),
    usage_status: z.enum(['pending', 'ready']).meta({ id: 'BrowserUsageStatus' }).optional(),
  })
  .meta({ id: 'Browser' })
export type Browser = z.infer<typeof Browser>

export const BrowserRequest = z
  .object({
    name: SessionName.optional(),
    tags: Tags.optional(),
    headless: z.boolean().default(false),
    stealth: z.boolean().default(false),
    gpu: z.boolean().default(false),
    timeout_seconds: z
      .int()
      .min(minTimeoutSeconds)
      .max(maxTimeoutSeconds)
      .default(defaultTimeoutSeconds)
      .meta({ description: 'Seconds after the last activity until the session is deleted.' }),
    viewport: BrowserViewport.optional(),
    kiosk_mode: z.boolean().default(false),
    start_url: StartUrl.optional(),
    chrome_policy: ChromePolicy.optional(),
    memory: z
      .enum(['1GiB', '2GiB', '8GiB', '16GiB'])
      .optional()
      .meta({ description: 'Headless: 1GiB (the default) or 2GiB. Headful without GPU: 8GiB (the default) or 16GiB.' }),
    region: Region.optional(),
    invocation_id: z.string().min(1).max(255).optional().meta({ description: 'Of the same project.' }),
    telemetry: BrowserTelemetryRequestConfig.nullish(),
    profile: BrowserProfile.nullish(),
    extensions: z
      .array(ExtensionReference)
      .max(maxExtensionsOfSession)
      .nullish()
      .meta({ description: 'Stored extensions that the browser starts with.' }),
    keep_downloads: z
      .boolean()
      .default(false)
      .meta({ description: 'Keep the files that pages have downloaded when the session ends.' }),
    ...proxySelection,
    network: BrowserNetworkConfig.optional(),
    location: Unsupported,
    vaults: VaultReferences.nullish().meta({ description: 'Vaults whose values may be filled into this browser.' }),
    video_memory: Unsupported,
  })
  .superRefine(checkProxySelection)
  .superRefine(checkStartUrl)
  .meta({ id: 'BrowserRequest' })
export type BrowserRequest = z.infer<typeof BrowserRequest>
