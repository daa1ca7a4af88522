import { z } from 'zod'
import { defineEndpoint } from '../endpoint.ts'
import {
  AnalysisListQuery,
  AnalysisSummary,
  ConfigRegistryResponse,
  LookupRequest,
  LookupResponse,
  RecommendationListQuery,
  RecommendationSummary,
  ResolveRequest,
} from './config-registry.ts'

const tag = 'Config Registry'
const OneAnalysis = z.object({ id: z.string().min(1).max(255) })

export const listRecommendations = defineEndpoint({
  operationId: 'listConfigRegistryRecommendations',
  method: 'GET',
  path: '/config-registry',
  summary: 'List the targets that the project has requested',
  tag,
  access: 'project',
  query: RecommendationListQuery,
  reply: z.array(RecommendationSummary),
  paged: true,
  status: 200,
  errors: [],
})

export const lookUpConfiguration = defineEndpoint({
  operationId: 'lookUpConfiguration',
  method: 'POST',
  path: '/config-registry/lookup',
  summary: 'Get the browser and proxy settings that are known to work for a site',
  description: 'Starts no analysis and resolves no names.',
  tag,
  access: 'project',
  body: LookupRequest,
  reply: LookupResponse,
  status: 200,
  errors: [],
})

export const resolveConfiguration = defineEndpoint({
  operationId: 'resolveConfiguration',
  method: 'POST',
  path: '/config-registry/resolve',
  summary: 'Start an analysis of a site',
  description:
    'Responds immediately with the known results. Joins a running analysis of the same request. For a site that was ' +
    'analysed recently, starts none, and analysis is null.',
  tag,
  access: 'project',
  isRateLimited: true,
  body: ResolveRequest,
  reply: ConfigRegistryResponse,
  status: 200,
  errors: ['analysis_limit_reached'],
})

export const listAnalyses = defineEndpoint({
  operationId: 'listConfigRegistryAnalyses',
  method: 'GET',
  path: '/config-registry/analyses',
  summary: 'List analyses',
  description: 'Newest first.',
  tag,
  access: 'project',
  query: AnalysisListQuery,
  reply: z.array(AnalysisSummary),
  paged: true,
  status: 200,
  errors: [],
})

export const getAnalysis = defineEndpoint({
  operationId: 'getConfigRegistryAnalysis',
  method: 'GET',
  path: '/config-registry/analyses/{id}',
  summary: 'Get an analysis',
  description: 'A finished analysis does not change.',
  tag,
  access: 'project',
  params: OneAnalysis,
  reply: ConfigRegistryResponse,
  status: 200,
  errors: ['analysis_not_found'],
})

export const cancelAnalysis = defineEndpoint({
  operationId: 'cancelConfigRegistryAnalysis',
  method: 'POST',
  path: '/config-registry/analyses/{id}/cancel',
  summary: 'Cancel an analysis',
  description: 'It may still run after the response. A finished analysis does not change.',
  tag,
  access: 'project',
  params: OneAnalysis,
  reply: ConfigRegistryResponse,
  status: 200,
  errors: ['analysis_not_found'],
})
