import type { Services } from '../services.ts'
import {
  analyseSite,
  buildDeployment,
  detachProxy,
  endInvocationSessions,
  endLostInvocations,
  endLostSessions,
  expireAnalyses,
  expireSearches,
  exportAuditLog,
  followDeletedProxy,
  shortenAppHistory,
  shortenAuditLog,
  sweepBlobs,
} from './declared-jobs.ts'
import type { JobRunner } from './job-runner.ts'

type Workers = Pick<
  Services,
  | 'analysisRunner'
  | 'appLogs'
  | 'audit'
  | 'auditExporter'
  | 'blobSweep'
  | 'builds'
  | 'configRegistry'
  | 'deletedProxies'
  | 'invocationRunner'
  | 'invocationSessions'
  | 'invocations'
  | 'lostSessions'
  | 'searchExpiry'
>

interface StartJobsOptions {
  /** How many sites this server analyses at once. */
  readonly analysesAtOnce?: number
  /** How many deployments it builds at once. */
  readonly buildsAtOnce?: number
}

/** All jobs and their handlers. */
export async function startJobs(
  runner: JobRunner,
  workers: Workers,
  { analysesAtOnce = 1, buildsAtOnce = 1 }: StartJobsOptions = {},
): Promise<void> {
  const { analysisRunner, appLogs, builds, configRegistry, invocationRunner } = workers
  const { invocations, invocationSessions } = workers
  const { audit, auditExporter, blobSweep, deletedProxies, lostSessions, searchExpiry } = workers
  await Promise.all([
    runner.work(sweepBlobs, (_data, signal) => blobSweep.sweep(signal)),
    runner.work(exportAuditLog, (_data, signal) => auditExporter.run(signal)),
    runner.work(shortenAuditLog, () => audit.removeOld()),
    runner.work(expireSearches, () => searchExpiry.run()),
    runner.work(endLostSessions, () => lostSessions.end()),
    runner.work(followDeletedProxy, ({ proxyId }) => deletedProxies.follow(proxyId)),
    runner.work(detachProxy, ({ proxyId }) => deletedProxies.detach(proxyId)),
    runner.work(expireAnalyses, () => configRegistry.expireOverdue()),
    runner.work(endLostInvocations, () => invocationRunner.failOverdue()),
    runner.work(endInvocationSessions, (data) => invocationSessions.endOwn(data.projectId, data.invocationId)),
    runner.work(shortenAppHistory, async () => {
      await appLogs.removeOld()
      await invocations.removeOld()
    }),
    ...Array.from({ length: buildsAtOnce }, () =>
      runner.work(buildDeployment, ({ deploymentId }, signal) => builds.run(deploymentId, signal)),
    ),
    ...Array.from({ length: analysesAtOnce }, () =>
      runner.work(analyseSite, ({ analysisId }, signal) => analysisRunner.run(analysisId, signal)),
    ),
  ])
}
