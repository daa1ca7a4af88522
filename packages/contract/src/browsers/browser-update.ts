import { z } from 'zod'
import { Unchangeable, Unsupported } from '../common/unsupported.ts'
import { BrowserProfile } from '../profiles/profile.ts'
import { SessionName, StartUrl } from './browser.ts'
import { BrowserNetworkUpdate } from './network-config.ts'
import { checkProxySelection, proxySelection } from './proxy-selection.ts'
import { Tags } from './tags.ts'
import { BrowserTelemetryRequestConfig } from './telemetry-config.ts'
import { BrowserViewport } from './viewport.ts'

const BrowserViewportUpdate = BrowserViewport.extend({
  force: z.boolean().default(false).meta({ description: 'Also while a live view or a recording is active.' }),
}).meta({ id: 'BrowserViewportUpdate' })

/** Changes of a session. Absent fields stay unchanged. */
export const BrowserUpdateRequest = z
  .object({
    name: SessionName.or(z.literal('')).nullish().meta({ description: 'An empty string clears the name.' }),
    start_url: StartUrl.optional(),
    tags: Tags.nullish(),
    telemetry: BrowserTelemetryRequestConfig.nullish(),
    viewport: BrowserViewportUpdate.optional(),
    profile: BrowserProfile.nullish().meta({ description: 'Only while the session has none.' }),
    ...proxySelection,
    network: BrowserNetworkUpdate.optional(),
    location: Unsupported,
    chrome_policy: Unchangeable,
    extensions: Unchangeable,
    gpu: Unchangeable,
    headless: Unchangeable,
    keep_downloads: Unchangeable,
    kiosk_mode: Unchangeable,
    memory: Unchangeable,
    region: Unchangeable,
    stealth: Unchangeable,
    timeout_seconds: Unchangeable,
    vaults: Unchangeable,
  })
  .superRefine(checkProxySelection)
  .meta({ id: 'BrowserUpdateRequest' })
export type BrowserUpdateRequest = z.infer<typeof BrowserUpdateRequest>
