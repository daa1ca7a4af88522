import type { Services } from '../services.ts'
import {
  analyseSite,
  applyLease,
  buildDeployment,
  checkAuthConnection,
  cleanUpAuth,
  detachProxy,
  endInvocationSessions,
  endLostInvocations,
  endLostSessions,
  expireAnalyses,
  expireSearches,
  expireSessionFiles,
  exportAuditLog,
  fillPool,
  followDeletedProxy,
  reauthenticate,
  rotateTelemetry,
  runInvocation,
  shortenAppHistory,
  shortenAuditLog,
  sweepBlobs,
  tendPools,
  tendWebhooks,
} from './declared-jobs.ts'
import type { JobRunner } from './job-runner.ts'

type Workers = Pick<
  Services,
  | 'analysisRunner'
  | 'appLogs'
  | 'audit'
  | 'auditExporter'
  | 'authHealthChecks'
  | 'blobSweep'
  | 'builds'
  | 'configRegistry'
  | 'deletedProxies'
  | 'downloads'
  | 'invocationRunner'
  | 'invocationSessions'
  | 'invocations'
  | 'leases'
  | 'lostSessions'
  | 'poolFiller'
  | 'replays'
  | 'searchExpiry'
  | 'telemetry'
  | 'webhooks'
>

interface StartJobsOptions {
  /** The number of sites that this server analyses at the same time. */
  readonly analysesAtOnce?: number
  /** The number of deployments that it builds at the same time. */
  readonly buildsAtOnce?: number
}

/** A pool whose browsers start slowly does not delay others. */
const poolsFilledAtOnce = 2
/** Checks take seconds, logins can take minutes. */
const loginsAtOnce = 2

/** All jobs and their handlers. */
export async function startJobs(
  runner: JobRunner,
  workers: Workers,
  { analysesAtOnce = 1, buildsAtOnce = 1 }: StartJobsOptions = {},
): Promise<void> {
  const { analysisRunner, appLogs, builds, configRegistry, invocationRunner, leases, poolFiller } = workers
  const { invocations, invocationSessions } = workers
  const { authHealthChecks } = workers
  const { audit, auditExporter, blobSweep, deletedProxies, downloads, lostSessions, replays, searchExpiry, telemetry } =
    workers
  const { webhooks } = workers
  await Promise.all([
    runner.work(sweepBlobs, (_data, signal) => blobSweep.sweep(signal)),
    runner.work(exportAuditLog, (_data, signal) => auditExporter.run(signal)),
    runner.work(shortenAuditLog, () => audit.removeOld()),
    runner.work(rotateTelemetry, () => telemetry.rotate()),
    runner.work(tendWebhooks, (_data, signal) => webhooks.tend(signal)),
    runner.work(expireSearches, () => searchExpiry.run()),
    runner.work(expireSessionFiles, async () => {
      await replays.expire()
      await downloads.expire()
    }),
    runner.work(endLostSessions, () => lostSessions.end()),
    runner.work(followDeletedProxy, ({ proxyId }) => deletedProxies.follow(proxyId)),
    runner.work(detachProxy, ({ proxyId }) => deletedProxies.detach(proxyId)),
    runner.work(expireAnalyses, () => configRegistry.expireOverdue()),
    runner.work(applyLease, (settings) => leases.applyLease(settings)),
    runner.work(tendPools, () => poolFiller.tend()),
    ...Array.from({ length: poolsFilledAtOnce }, () =>
      runner.work(fillPool, ({ poolId }, signal) => poolFiller.fill(poolId, signal)),
    ),
    ...Array.from({ length: loginsAtOnce }, () => [
      runner.work(checkAuthConnection, ({ connectionId }, signal) => authHealthChecks.check(connectionId, signal)),
      runner.work(reauthenticate, ({ flowId }, signal) => authHealthChecks.reauthenticate(flowId, signal)),
    ]).flat(),
    runner.work(cleanUpAuth, () => authHealthChecks.cleanUp()),
    runner.work(endLostInvocations, () => invocationRunner.failOverdue()),
    runner.work(runInvocation, ({ invocationId }) => invocationRunner.take(invocationId)),
    runner.work(endInvocationSessions, (data) => invocationSessions.endOwn(data.projectId, data.invocationId)),
    runner.work(shortenAppHistory, async () => {
      await appLogs.removeOld()
      await invocations.removeOld()
    }),
    ...Array.from({ length: buildsAtOnce }, () =>
      runner.work(buildDeployment, ({ deploymentId, wait }, signal) => builds.run(deploymentId, signal, wait)),
    ),
    ...Array.from({ length: analysesAtOnce }, () =>
      runner.work(analyseSite, ({ analysisId }, signal) => analysisRunner.run(analysisId, signal)),
    ),
  ])
  // A killed server has not reported what its pools need.
  await poolFiller.tend()
}
