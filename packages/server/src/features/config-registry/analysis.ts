import type { ConfigRegistryResponse, RegistryProxyType } from '@berth/contract/config-registry/config-registry.ts'
import { z } from 'zod'

/** The browser and proxy of a visit. */
export interface Configuration {
  readonly headless: boolean
  readonly stealth: boolean
  /** Absent for a direct connection. Without a country, any of the operator's servers. */
  readonly proxy?: { readonly type: RegistryProxyType; readonly country?: string | undefined }
}

export type RunOutcome = 'accessed' | 'blocked' | 'inconclusive'

/** The observations of one visit. They come from a machine that may be compromised, so every member is bounded. */
export const Visit = z.object({
  /** The status of the last document in the tab. Null if there was none. */
  status: z.int().nullable(),
  /** `ERR_…` of the browser, or `TIMEOUT`. */
  failure: z.string().max(100).nullable(),
  isPage: z.boolean().meta({ description: 'Whether it is HTML, of which text is to be expected.' }),
  title: z.string().max(1_000),
  text: z.string().max(20_000),
  /** Names of signs of a challenge in the document or its response headers. */
  challenges: z.array(z.string().max(100)).max(50),
  hasPasswordField: z.boolean(),
  /** The number of pictures, canvases and videos. */
  media: z.int(),
})
export type Visit = z.infer<typeof Visit>

export interface Run {
  readonly configuration: Configuration
  readonly visit: Visit
}

/** The result that an analysis shows from its end on. */
export type AnalysisResult = Pick<
  ConfigRegistryResponse,
  'recommendation' | 'working_configurations' | 'guidance' | 'workload_outcome'
>
