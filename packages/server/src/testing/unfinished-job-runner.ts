import { createLogger } from '@berth/runtime/process/logger.ts'
import type { Job } from '../jobs/job.ts'
import { JobRunner } from '../jobs/job-runner.ts'
import { quickPace } from './quick-pace.ts'

/** A job for processes that a test kills. */
export const unfinishedJob: Job<{ number: number }> = {
  name: 'doomed',
  runsOn: 'any server',
  keyOf: ({ number }) => `${number}`,
  limitSeconds: 600,
}

/*
 * A process that claims jobs, reports each, and finishes none. The test kills it meanwhile.
 *
 * Argument: the connection string of the database.
 */
if (import.meta.main) {
  const runner = new JobRunner({
    connectionString: process.argv[2] ?? '',
    serverId: 'doomed',
    logger: createLogger({ name: 'doomed', level: 'silent', json: true }),
    pace: quickPace,
  })
  await runner.work(unfinishedJob, async ({ number }) => {
    process.stdout.write(`${number}\n`)
    await new Promise(() => {})
  })
}
