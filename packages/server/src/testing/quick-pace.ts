import type { JobPace } from '../jobs/job-runner.ts'

/** The shortest intervals that pg-boss allows. */
export const quickPace: JobPace = { heartbeatSeconds: 10, superviseSeconds: 1, pollSeconds: 0.5 }
