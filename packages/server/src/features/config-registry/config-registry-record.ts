import type {
  Analysis,
  AnalysisSummary,
  ConfigRegistryResponse,
  LookupResponse,
  RecommendationSummary,
} from '@berth/contract/config-registry/config-registry.ts'
import type { z } from 'zod'
import type { Summary } from './analysis-store.ts'
import type { Answer } from './config-registry-service.ts'
import { type StoredAnalysis, targetOf } from './stored-analysis.ts'

export function lookupResponse({ analysis: _analysis, workload_outcome: _outcome, ...known }: Answer): LookupResponse {
  return known
}

export function registryResponse({ analysis, ...known }: Answer): ConfigRegistryResponse {
  return { ...known, analysis: analysis && analysisRecord(analysis) }
}

export function analysisSummary(analysis: StoredAnalysis): AnalysisSummary {
  return { analysis: analysisRecord(analysis), target: targetOf(analysis) }
}

export function recommendationSummary({ recommendation, ...summary }: Summary): RecommendationSummary {
  return {
    ...summary,
    last_requested_at: summary.last_requested_at.toISOString(),
    recommendation: recommendation?.type === 'recommendation' ? recommendation : null,
  }
}

function analysisRecord(analysis: StoredAnalysis): z.infer<typeof Analysis> {
  return {
    id: analysis.id,
    created_at: analysis.created_at.toISOString(),
    expires_at: analysis.expires_at.toISOString(),
    finished_at: analysis.finished_at?.toISOString() ?? null,
    failure: analysis.failure,
    status: analysis.status,
    ...(analysis.intent !== null && { intent: analysis.intent }),
  }
}
