import type { ConfigRegistryResponse, RegistryProxyType } from '@berth/contract/config-registry/config-registry.ts'
import { z } from 'zod'

/** What a browser is tried with. */
export interface Configuration {
  readonly headless: boolean
  readonly stealth: boolean
  /** Absent: directly. Without a country: wherever the operator's servers are. */
  readonly proxy?: { readonly type: RegistryProxyType; readonly country?: string | undefined }
}

export type RunOutcome = 'accessed' | 'blocked' | 'inconclusive'

/** What one visit has seen. It comes from a machine that may have been taken over, so that every part is bounded. */
export const Visit = z.object({
  /** Of the last document in the tab; null when there was none. */
  status: z.int().nullable(),
  /** `ERR_…` of the browser, or `TIMEOUT`. */
  failure: z.string().max(100).nullable(),
  isPage: z.boolean().meta({ description: 'Whether it is HTML, of which text is to be expected.' }),
  title: z.string().max(1_000),
  text: z.string().max(20_000),
  /** Names of what stands for a challenge in the document or the headers of its answer. */
  challenges: z.array(z.string().max(100)).max(50),
  hasPasswordField: z.boolean(),
  /** Pictures, canvases and videos. */
  media: z.int(),
})
export type Visit = z.infer<typeof Visit>

export interface Run {
  readonly configuration: Configuration
  readonly visit: Visit
}

/** What an analysis says at its end, and from then on. */
export type AnalysisResult = Pick<
  ConfigRegistryResponse,
  'recommendation' | 'working_configurations' | 'guidance' | 'workload_outcome'
>
