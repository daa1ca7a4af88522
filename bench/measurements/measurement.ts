import type { Pages } from '../../e2e/testing/pages.ts'
import type { Figures } from '../figures.ts'
import type { Service } from '../services/service.ts'

export interface BenchContext {
  readonly services: readonly Service[]
  readonly pages: Pages
  readonly figures: Figures
  /** How often each thing is done; what takes no time is done a multiple of it. */
  readonly rounds: number
  /** How many sessions there are at most while growth is measured. */
  readonly maxSessions: number
  /** Seconds that nothing is done to see what that costs. */
  readonly idleSeconds: number
}

export type Measurement = (context: BenchContext) => Promise<void>
