import { AssertionError } from 'node:assert/strict'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Transaction } from 'kysely'
import type { PgBoss, SendOptions } from 'pg-boss'
import { asUnavailable } from '../database/database.ts'
import type { Tables } from '../database/tables.ts'
import type { Job, JobHandler } from './job.ts'

export const jobsSchema = 'jobs'
const maxConnections = 4
const closeLimitMilliseconds = 3_000
const retry = { retryLimit: 50, retryDelay: 1, retryBackoff: true, retryDelayMax: 5 * 60 }
const keptSeconds = 24 * 60 * 60

export interface JobPace {
  /** After this time without a heartbeat, a job is given to another server. */
  readonly heartbeatSeconds: number
  /** How often heartbeats are checked. */
  readonly superviseSeconds: number
  /** New jobs are announced by NOTIFY. Jobs that become due later are found by polling. */
  readonly pollSeconds: number
}

const usualPace: JobPace = { heartbeatSeconds: 15, superviseSeconds: 10, pollSeconds: 5 }

interface JobRunnerOptions {
  readonly connectionString: string
  /** The id of this server, for jobs that run on one server. */
  readonly serverId: string
  readonly logger: Logger
  readonly pace?: JobPace
}

interface EnqueueOptions {
  /** The server that runs the job, for jobs that run on one server. */
  readonly server?: string
  /** The job exists if and only if the transaction commits. */
  readonly transaction?: Transaction<Tables>
  /** No server claims it before. */
  readonly startAfterSeconds?: number
}

/** Accepts jobs to run later. */
export interface JobQueue {
  /** Resolves when the job is durable. */
  enqueue<Data extends object>(job: Job<Data>, data: Data, options?: EnqueueOptions): Promise<void>
}

/**
 * Runs jobs from the database, together with all servers that share it. One server claims a job. If it is killed, its
 * heartbeat stops and another server claims the job. A failed run is repeated with growing pauses. So a job runs at
 * least once. A server that hangs for longer than its heartbeat finds the signal of its run aborted.
 */
export class JobRunner implements JobQueue {
  readonly #options: JobRunnerOptions
  readonly #pace: JobPace
  readonly #queues = new Set<string>()
  readonly #closing = new AbortController()
  #opening: Promise<PgBoss> | undefined

  constructor(options: JobRunnerOptions) {
    this.#options = options
    this.#pace = options.pace ?? usualPace
  }

  async enqueue<Data extends object>(
    job: Job<Data>,
    data: Data,
    { server, transaction, startAfterSeconds }: EnqueueOptions = {},
  ): Promise<void> {
    if (job.runsOn === 'one server' && server === undefined) throw new Error(`${job.name} needs a server to run on`)
    try {
      const boss = await this.#open()
      const queue = await this.#queueOf(boss, job, server)
      const { fromKysely } = await import('pg-boss')
      await boss.send(queue, data, {
        ...this.#optionsOf(job, data),
        ...(transaction && { db: fromKysely(transaction) }),
        ...(startAfterSeconds !== undefined && { startAfter: startAfterSeconds }),
      })
    } catch (error) {
      throw error instanceof AssertionError ? error : asUnavailable(error as Error)
    }
  }

  /** Starts running jobs of this kind, one at a time, and enqueues those with a schedule. */
  async work<Data extends object>(job: Job<Data>, handler: JobHandler<Data>): Promise<void> {
    const boss = await this.#open()
    const queue = await this.#queueOf(boss, job, this.#options.serverId)
    if (job.cron !== undefined) {
      await boss.schedule(queue, job.cron, {}, { ...this.#optionsOf(job, {} as Data), missed: 'once' })
    }
    const { pollSeconds } = this.#pace
    const polling = { pollingIntervalSeconds: Math.min(pollSeconds, 2), notifyPollingIntervalSeconds: pollSeconds }
    let worker: string | undefined
    worker = await boss.work<Data>(queue, polling, async ([claimed]) => {
      if (!claimed) return
      // There may be more jobs: NOTIFY may have announced several while this worker was busy.
      if (worker !== undefined) boss.notifyWorker(worker)
      await this.#run(job, () => handler(claimed.data, AbortSignal.any([claimed.signal, this.#closing.signal])))
    })
  }

  /** Claims no more jobs and aborts running ones. Another server, or the next start, runs them again. */
  async close(): Promise<void> {
    this.#closing.abort()
    const boss = await this.#opening?.catch(() => undefined)
    await boss?.stop({ graceful: true, timeout: closeLimitMilliseconds })
  }

  async #run<Data extends object>({ name }: Job<Data>, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (!this.#closing.signal.aborted) {
        this.#options.logger.warn({ err: error, job: name }, 'a job failed; retrying')
      }
      throw error
    }
  }

  /** Opened on first use, so that the start of the server does not wait for it. */
  #open(): Promise<PgBoss> {
    this.#opening ??= this.#openBoss().catch((error: unknown) => {
      this.#opening = undefined
      throw error
    })
    return this.#opening
  }

  /** Creates the tables of jobs if they do not exist. */
  async #openBoss(): Promise<PgBoss> {
    this.#closing.signal.throwIfAborted()
    const { connectionString, logger } = this.#options
    const { PgBoss } = await import('pg-boss')
    const boss = new PgBoss({
      connectionString,
      schema: jobsSchema,
      max: maxConnections,
      application_name: 'berth jobs',
      useListenNotify: true,
      superviseIntervalSeconds: this.#pace.superviseSeconds,
      monitorIntervalSeconds: this.#pace.superviseSeconds,
      maintenanceIntervalSeconds: 60 * 60,
      registerInstance: false,
      openTelemetry: { enabled: false },
    })
    boss.on('error', (error) => logger.warn({ reason: error.message }, 'the job queue failed; retrying'))
    boss.on('warning', ({ message }) => logger.warn(`jobs: ${message}`))
    await boss.start()
    return boss
  }

  async #queueOf<Data extends object>(boss: PgBoss, job: Job<Data>, server: string | undefined): Promise<string> {
    const queue = job.runsOn === 'one server' ? `${job.name}/${server}` : job.name
    if (!this.#queues.has(queue)) {
      await boss.createQueue(queue, { policy: 'stately', notify: true })
      this.#queues.add(queue)
    }
    return queue
  }

  #optionsOf<Data extends object>(job: Job<Data>, data: Data): SendOptions {
    return {
      ...retry,
      singletonKey: job.keyOf(data),
      expireInSeconds: job.limitSeconds,
      heartbeatSeconds: this.#pace.heartbeatSeconds,
      deleteAfterSeconds: keptSeconds,
    }
  }
}
