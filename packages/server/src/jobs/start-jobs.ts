import type { Services } from '../services.ts'
import {
  analyseSite,
  detachProxy,
  endLostSessions,
  expireAnalyses,
  expireSearches,
  expireSessionFiles,
  exportAuditLog,
  followDeletedProxy,
  shortenAuditLog,
  sweepBlobs,
} from './declared-jobs.ts'
import type { JobRunner } from './job-runner.ts'

type Workers = Pick<
  Services,
  | 'analysisRunner'
  | 'audit'
  | 'auditExporter'
  | 'blobSweep'
  | 'configRegistry'
  | 'deletedProxies'
  | 'downloads'
  | 'lostSessions'
  | 'replays'
  | 'searchExpiry'
>

interface StartJobsOptions {
  /** How many sites this server analyses at once. */
  readonly analysesAtOnce?: number
}

/** All jobs and their handlers. */
export async function startJobs(
  runner: JobRunner,
  workers: Workers,
  { analysesAtOnce = 1 }: StartJobsOptions = {},
): Promise<void> {
  const { analysisRunner, configRegistry } = workers
  const { audit, auditExporter, blobSweep, deletedProxies, downloads, lostSessions, replays, searchExpiry } = workers
  await Promise.all([
    runner.work(sweepBlobs, (_data, signal) => blobSweep.sweep(signal)),
    runner.work(exportAuditLog, (_data, signal) => auditExporter.run(signal)),
    runner.work(shortenAuditLog, () => audit.removeOld()),
    runner.work(expireSearches, () => searchExpiry.run()),
    runner.work(expireSessionFiles, async () => {
      await replays.expire()
      await downloads.expire()
    }),
    runner.work(endLostSessions, () => lostSessions.end()),
    runner.work(followDeletedProxy, ({ proxyId }) => deletedProxies.follow(proxyId)),
    runner.work(detachProxy, ({ proxyId }) => deletedProxies.detach(proxyId)),
    runner.work(expireAnalyses, () => configRegistry.expireOverdue()),
    ...Array.from({ length: analysesAtOnce }, () =>
      runner.work(analyseSite, ({ analysisId }, signal) => analysisRunner.run(analysisId, signal)),
    ),
  ])
}
