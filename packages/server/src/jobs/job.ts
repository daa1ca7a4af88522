/** A kind of work that some server does at some time, even if the server that enqueued it is gone. */
export interface Job<Data extends object> {
  readonly name: string
  /** `one server`: the server that is named when the job is enqueued, for work that only it can do. */
  readonly runsOn: 'any server' | 'one server'
  /**
   * Of the jobs with one key, one runs and at most one waits. Others are dropped, because the waiting one covers them.
   */
  readonly keyOf: (data: Data) => string
  /** The schedule, once for all servers. Runs that were missed while no server was running are enqueued once. */
  readonly cron?: string
  /** A longer run is aborted and counts as failed. */
  readonly limitSeconds: number
}

/** Rejects to be run again later. The work may be partly or completely done by an earlier run. */
export type JobHandler<Data extends object> = (data: Data, signal: AbortSignal) => Promise<void>
