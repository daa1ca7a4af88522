/** A kind of work that is done at some time, by some server, whatever becomes of the server that asked for it. */
export interface Job<Data extends object> {
  readonly name: string
  /** `one server`: the one that whoever enqueues it names, for what only that server can do. */
  readonly runsOn: 'any server' | 'one server'
  /** Of the jobs with one key one runs and one waits at most: another is dropped, because the one that waits will do. */
  readonly keyOf: (data: Data) => string
  /** When it is enqueued by itself, once for all servers; what was due while none ran is enqueued once. */
  readonly cron?: string
  /** A run that takes longer is aborted, and counts as failed. */
  readonly limitSeconds: number
}

/** Fails by rejecting, and is run again later. It may find its work done, in part or whole, by a run before. */
export type JobHandler<Data extends object> = (data: Data, signal: AbortSignal) => Promise<void>
