import type { Services } from '../services.ts'
import {
  detachProxy,
  endLostSessions,
  exportAuditLog,
  followDeletedProxy,
  shortenAuditLog,
  sweepBlobs,
} from './declared-jobs.ts'
import type { JobRunner } from './job-runner.ts'

type Workers = Pick<Services, 'audit' | 'auditExporter' | 'blobSweep' | 'deletedProxies' | 'lostSessions'>

/** All jobs and their handlers. */
export async function startJobs(runner: JobRunner, workers: Workers): Promise<void> {
  const { audit, auditExporter, blobSweep, deletedProxies, lostSessions } = workers
  await Promise.all([
    runner.work(sweepBlobs, (_data, signal) => blobSweep.sweep(signal)),
    runner.work(exportAuditLog, (_data, signal) => auditExporter.run(signal)),
    runner.work(shortenAuditLog, () => audit.removeOld()),
    runner.work(endLostSessions, () => lostSessions.end()),
    runner.work(followDeletedProxy, ({ proxyId }) => deletedProxies.follow(proxyId)),
    runner.work(detachProxy, ({ proxyId }) => deletedProxies.detach(proxyId)),
  ])
}
