import type {
  AnalysisId,
  AuthConnectionId,
  AuthFlowId,
  DeploymentId,
  InvocationId,
  PoolId,
  ProjectId,
  ProxyId,
} from '@berth/contract/common/ids.ts'
import type { LeaseSettings } from '../features/sessions/pools/lease.ts'
import type { Job } from './job.ts'

/** Removes blobs without a row. */
export const sweepBlobs: Job<Record<string, never>> = {
  name: 'sweep-blobs',
  runsOn: 'any server',
  keyOf: () => '',
  cron: '7 * * * *',
  limitSeconds: 30 * 60,
}

/** Exports new entries of the audit log to their destinations. */
export const exportAuditLog: Job<Record<string, never>> = {
  name: 'export-audit-log',
  runsOn: 'any server',
  keyOf: () => '',
  cron: '* * * * *',
  limitSeconds: 30 * 60,
}

/** Removes entries of the audit log that are older than the retention period. */
export const shortenAuditLog: Job<Record<string, never>> = {
  name: 'shorten-audit-log',
  runsOn: 'any server',
  keyOf: () => '',
  cron: '23 * * * *',
  limitSeconds: 30 * 60,
}

/** Creates the partitions of telemetry for the coming days, and removes old ones. */
export const rotateTelemetry: Job<Record<string, never>> = {
  name: 'rotate-telemetry',
  runsOn: 'any server',
  keyOf: () => '',
  cron: '37 * * * *',
  limitSeconds: 10 * 60,
}

/** Removes old deliveries of webhooks, and disables webhooks with too many pending ones. */
export const tendWebhooks: Job<Record<string, never>> = {
  name: 'tend-webhooks',
  runsOn: 'any server',
  keyOf: () => '',
  cron: '* * * * *',
  limitSeconds: 10 * 60,
}

/** Removes expired searches, and old pages from their cache. */
export const expireSearches: Job<Record<string, never>> = {
  name: 'expire-searches',
  runsOn: 'any server',
  keyOf: () => '',
  cron: '11 * * * *',
  limitSeconds: 10 * 60,
}

/** Removes expired recordings and kept downloads. */
export const expireSessionFiles: Job<Record<string, never>> = {
  name: 'expire-session-files',
  runsOn: 'any server',
  keyOf: () => '',
  cron: '*/5 * * * *',
  limitSeconds: 30 * 60,
}

/** Ends the sessions of lost servers. */
export const endLostSessions: Job<Record<string, never>> = {
  name: 'end-lost-sessions',
  runsOn: 'any server',
  keyOf: () => '',
  cron: '* * * * *',
  limitSeconds: 60,
}

/** Finds the servers with sessions that use a deleted proxy. */
export const followDeletedProxy: Job<{ proxyId: ProxyId }> = {
  name: 'follow-deleted-proxy',
  runsOn: 'any server',
  keyOf: ({ proxyId }) => proxyId,
  limitSeconds: 60,
}

/** Removes a deleted proxy from the sessions of one server. */
export const detachProxy: Job<{ proxyId: ProxyId }> = {
  name: 'detach-proxy',
  runsOn: 'one server',
  keyOf: ({ proxyId }) => proxyId,
  limitSeconds: 60,
}

/** Visits a site for the config registry. */
export const analyseSite: Job<{ analysisId: AnalysisId }> = {
  name: 'analyse-site',
  runsOn: 'any server',
  keyOf: ({ analysisId }) => analysisId,
  limitSeconds: 60 * 60,
}

/** The wait of a build for a server with room. */
export interface BuildWait {
  readonly since: string
  /** The server that had no room. */
  readonly server: string
  /** Whether its owner has been informed. */
  readonly isTold: boolean
}

/** Builds a deployment. */
export const buildDeployment: Job<{ deploymentId: DeploymentId; wait?: BuildWait }> = {
  name: 'build-deployment',
  runsOn: 'any server',
  keyOf: ({ deploymentId }) => deploymentId,
  limitSeconds: 15 * 60,
}

/** Runs an asynchronous invocation for which the server that accepted it has no room. */
export const runInvocation: Job<{ invocationId: InvocationId }> = {
  name: 'run-invocation',
  runsOn: 'one server',
  keyOf: ({ invocationId }) => invocationId,
  limitSeconds: 60,
}

/** Fails the invocations of lost servers, and deletes the keys of deployments that have ended. */
export const endLostInvocations: Job<Record<string, never>> = {
  name: 'end-lost-invocations',
  runsOn: 'any server',
  keyOf: () => '',
  cron: '* * * * *',
  limitSeconds: 60,
}

/** Ends the sessions of an invocation on one server. */
export const endInvocationSessions: Job<{ projectId: ProjectId; invocationId: InvocationId }> = {
  name: 'end-invocation-sessions',
  runsOn: 'one server',
  keyOf: ({ invocationId }) => invocationId,
  limitSeconds: 2 * 60,
}

/** Removes old invocations and old log lines of apps. */
export const shortenAppHistory: Job<Record<string, never>> = {
  name: 'shorten-app-history',
  runsOn: 'any server',
  keyOf: () => '',
  cron: '41 * * * *',
  limitSeconds: 10 * 60,
}

/** Ends analyses that have exceeded their time. */
export const expireAnalyses: Job<Record<string, never>> = {
  name: 'expire-analyses',
  runsOn: 'any server',
  keyOf: () => '',
  cron: '* * * * *',
  limitSeconds: 60,
}

/** Builds the missing browsers of a pool. */
export const fillPool: Job<{ poolId: PoolId }> = {
  name: 'fill-pool',
  runsOn: 'any server',
  keyOf: ({ poolId }) => poolId,
  limitSeconds: 30 * 60,
}

/** Finds the pools that must be filled. */
export const tendPools: Job<Record<string, never>> = {
  name: 'tend-pools',
  runsOn: 'any server',
  keyOf: () => '',
  cron: '* * * * *',
  limitSeconds: 60,
}

/** Applies the settings of a lease to a browser, when another server has leased it. */
export const applyLease: Job<LeaseSettings> = {
  name: 'apply-lease',
  runsOn: 'one server',
  keyOf: ({ sessionId, leaseNumber }) => `${sessionId} ${leaseNumber}`,
  limitSeconds: 60,
}

/** Checks whether the profile of a connection is still logged in. */
export const checkAuthConnection: Job<{ connectionId: AuthConnectionId }> = {
  name: 'check-auth-connection',
  runsOn: 'any server',
  keyOf: ({ connectionId }) => connectionId,
  limitSeconds: 5 * 60,
}

/** Logs in a profile again without a person. */
export const reauthenticate: Job<{ flowId: AuthFlowId }> = {
  name: 'reauthenticate',
  runsOn: 'any server',
  keyOf: ({ flowId }) => flowId,
  limitSeconds: 25 * 60,
}

/** Ends the logins of lost servers, and removes old logins and checks. */
export const cleanUpAuth: Job<Record<string, never>> = {
  name: 'clean-up-auth',
  runsOn: 'any server',
  keyOf: () => '',
  cron: '* * * * *',
  limitSeconds: 60,
}
