import type { Pages } from '../../e2e/testing/pages.ts'
import type { Figures } from '../figures.ts'
import type { Service } from '../services/service.ts'

export interface BenchContext {
  readonly services: readonly Service[]
  readonly pages: Pages
  readonly figures: Figures
  /** How often each step is repeated. Quick steps are repeated a multiple of it. */
  readonly rounds: number
  /** The highest number of sessions when growth is measured. */
  readonly maxSessions: number
  /** The length of idle measurements in seconds. */
  readonly idleSeconds: number
}

export type Measurement = (context: BenchContext) => Promise<void>
