import { AssertionError } from 'node:assert/strict'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Transaction } from 'kysely'
import type { PgBoss, SendOptions } from 'pg-boss'
import { asUnavailable } from '../database/database.ts'
import type { Tables } from '../database/tables.ts'
import type { Job, JobHandler } from './job.ts'

const schema = 'jobs'
const maxConnections = 4
const closeLimitMilliseconds = 3_000
const retry = { retryLimit: 50, retryDelay: 1, retryBackoff: true, retryDelayMax: 5 * 60 }
const keptSeconds = 24 * 60 * 60

export interface JobPace {
  /** Without a sign of life for so long, a job is given to another server. */
  readonly heartbeatSeconds: number
  /** How often signs of life are looked for. */
  readonly superviseSeconds: number
  /** New jobs are told by NOTIFY; those that are due later are found by looking. */
  readonly pollSeconds: number
}

const usualPace: JobPace = { heartbeatSeconds: 15, superviseSeconds: 10, pollSeconds: 5 }

interface JobRunnerOptions {
  readonly connectionString: string
  /** Who this server is, for the jobs of one server. */
  readonly serverId: string
  readonly logger: Logger
  readonly pace?: JobPace
}

interface EnqueueOptions {
  /** Of a job of one server: which. */
  readonly server?: string
  /** The job is there when the transaction is, and not otherwise. */
  readonly transaction?: Transaction<Tables>
}

/** Takes jobs for later. */
export interface JobQueue {
  /** Resolves when the job is durable. */
  enqueue<Data extends object>(job: Job<Data>, data: Data, options?: EnqueueOptions): Promise<void>
}

/**
 * Runs jobs out of the database, with all servers that share it. A job is claimed by one server, and by another when
 * that one is killed and its heartbeat stops; a run that fails is repeated with growing pauses. So a job is run at least
 * once. A server that hangs for longer than its heartbeat finds the signal of its run aborted.
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
    { server, transaction }: EnqueueOptions = {},
  ): Promise<void> {
    if (job.runsOn === 'one server' && server === undefined) throw new Error(`${job.name} needs a server to run on`)
    try {
      const boss = await this.#open()
      const queue = await this.#queueOf(boss, job, server)
      const { fromKysely } = await import('pg-boss')
      await boss.send(queue, data, {
        ...this.#optionsOf(job, data),
        ...(transaction && { db: fromKysely(transaction) }),
      })
    } catch (error) {
      throw error instanceof AssertionError ? error : asUnavailable(error as Error)
    }
  }

  /** From now on this server runs jobs of the kind, one after another, and enqueues those with a schedule. */
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
      // There may be more: of several, NOTIFY has told when this worker was busy.
      if (worker !== undefined) boss.notifyWorker(worker)
      await this.#run(job, () => handler(claimed.data, AbortSignal.any([claimed.signal, this.#closing.signal])))
    })
  }

  /** Claims no further job, and aborts what runs: another server, or the next start, does it again. */
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
        this.#options.logger.warn({ err: error, job: name }, 'a job failed; trying again')
      }
      throw error
    }
  }

  /** With the first use: a start of the server does not wait for it. */
  #open(): Promise<PgBoss> {
    this.#opening ??= this.#openBoss().catch((error: unknown) => {
      this.#opening = undefined
      throw error
    })
    return this.#opening
  }

  /** Makes the tables of jobs where they are not there yet. */
  async #openBoss(): Promise<PgBoss> {
    this.#closing.signal.throwIfAborted()
    const { connectionString, logger } = this.#options
    const { PgBoss } = await import('pg-boss')
    const boss = new PgBoss({
      connectionString,
      schema,
      max: maxConnections,
      application_name: 'berth jobs',
      useListenNotify: true,
      superviseIntervalSeconds: this.#pace.superviseSeconds,
      monitorIntervalSeconds: this.#pace.superviseSeconds,
      maintenanceIntervalSeconds: 60 * 60,
      registerInstance: false,
      openTelemetry: { enabled: false },
    })
    boss.on('error', (error) => logger.warn({ reason: error.message }, 'jobs: something failed; trying again'))
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
