import type { AnalysisResult } from './analysis.ts'
import type { AnalysisEnd } from './analysis-store.ts'
import { configurationOf, labelOf } from './configurations.ts'

interface Failure {
  readonly code: string
  readonly message: string
}

const canceled: Failure = { code: 'canceled', message: 'The analysis was canceled.' }

/** The end of an analysis, with the result that it shows from then on. */
export function endOf(
  status: AnalysisEnd['status'],
  result: AnalysisResult,
  finishedAt: Date,
  failure = status === 'canceled' ? canceled : undefined,
): AnalysisEnd {
  const { recommendation } = result
  const recommended = recommendation?.type === 'recommendation' ? recommendation : undefined
  return {
    status,
    ...(failure && { failure }),
    result,
    label: recommended ? labelOf(configurationOf(recommended)) : null,
    successRate: recommended ? recommended.evidence.success_rate : null,
    finishedAt,
  }
}
