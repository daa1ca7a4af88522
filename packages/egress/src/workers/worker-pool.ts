import { availableParallelism } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type {
  EgressPolicy,
  EgressProbe,
  EgressProbeResult,
  EgressRoute,
} from '@berth/contract/egress/egress-endpoints.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { WorkerEnded, WorkerProcess } from './worker-process.ts'

/** The delay before a spare is started: machines that start now need the processors more. */
const sparePauseMilliseconds = 1_000

interface WorkerPoolOptions {
  readonly logger: Logger
  readonly workers: number | undefined
  /** Whether a spare is always ready to replace a worker that ends; it takes the memory of a process. */
  readonly hasSpare?: boolean
}

/** A fixed set of machines, and the worker that currently serves them. */
interface Shard {
  worker: WorkerProcess
  readonly routes: Map<string, EgressRoute>
  /** Resolves when the worker serves all of `routes`, or has ended. */
  ready: Promise<void>
}

/**
 * Spreads machines over worker processes, so that a crash affects only some of them and no flood uses more than one
 * processor. There are as many workers as processors, and at least two. They are started when machines need them. One
 * spare is always ready to replace a worker that ends.
 */
export class WorkerPool {
  readonly #logger: Logger
  readonly #maxShards: number
  readonly #shards: Shard[] = []
  readonly #closing = new AbortController()
  readonly #hasSpare: boolean
  #policy: EgressPolicy = { allow: [], own_addresses: [] }
  #spare: WorkerProcess | undefined

  constructor({ logger, workers, hasSpare = true }: WorkerPoolOptions) {
    this.#logger = logger
    this.#hasSpare = hasSpare
    this.#maxShards = workers ?? Math.max(2, availableParallelism())
  }

  get ids(): readonly string[] {
    return this.#shards.flatMap(({ routes }) => [...routes.keys()])
  }

  /** Resolves when the first worker is ready. */
  async start(): Promise<void> {
    this.#spare = new WorkerProcess(this.#logger)
    void this.#keepSpare(this.#spare)
    await this.#spare.ready
  }

  async setPolicy(policy: EgressPolicy): Promise<void> {
    this.#policy = policy
    await Promise.all(this.#shards.map((shard) => this.#request(shard, { do: 'set-policy', policy })))
  }

  /** Starts serving the machine, or applies a changed route. */
  async put(id: string, route: EgressRoute): Promise<void> {
    const known = this.#shards.find(({ routes }) => routes.has(id))
    const shard = known ?? (await this.#leastUsed())
    const before = shard.routes.get(id)
    const { gently: _, ...lasting } = route
    shard.routes.set(id, lasting)
    try {
      await this.#request(shard, { do: 'put-machine', id, route })
    } catch (error) {
      if (shard.routes.get(id) === lasting) {
        if (before) shard.routes.set(id, before)
        else shard.routes.delete(id)
      }
      throw error
    }
  }

  /** Stops serving the machine. Does nothing for an unknown machine. */
  async delete(id: string): Promise<void> {
    const shard = this.#shards.find(({ routes }) => routes.has(id))
    shard?.routes.delete(id)
    if (shard) await this.#request(shard, { do: 'delete-machine', id })
  }

  async probe(probe: EgressProbe): Promise<EgressProbeResult> {
    const shard = await this.#leastUsed()
    const result = await shard.worker.request({ do: 'probe', probe })
    return result as EgressProbeResult
  }

  async close(): Promise<void> {
    this.#closing.abort()
    const workers = [...this.#shards.map(({ worker }) => worker), this.#spare]
    await Promise.all(workers.map((worker) => worker?.end()))
  }

  async #leastUsed(): Promise<Shard> {
    const [least] = this.#shards.toSorted((one, other) => one.routes.size - other.routes.size)
    const isFull = this.#shards.length >= this.#maxShards
    if (least && (isFull || least.routes.size === 0)) return least
    const shard: Shard = { worker: this.#takeSpare(), routes: new Map(), ready: Promise.resolve() }
    this.#shards.push(shard)
    this.#serve(shard)
    return shard
  }

  /** Sends a request to the worker of the shard. If the worker ends meanwhile, its successor gets all routes anyway. */
  async #request(shard: Shard, request: Parameters<WorkerProcess['request']>[0]): Promise<void> {
    for (;;) {
      await shard.ready
      const { worker } = shard
      try {
        await worker.request(request)
        return
      } catch (error) {
        if (!(error instanceof WorkerEnded) || this.#closing.signal.aborted) throw error
        await worker.ended
      }
    }
  }

  /** Has the worker serve the machines of the shard. When it ends, another replaces it. */
  #serve(shard: Shard): void {
    const { worker } = shard
    shard.ready = this.#startServing(worker, shard.routes)
    void worker.ended.then(() => {
      if (this.#closing.signal.aborted) return
      this.#logger.error({ machines: shard.routes.size }, 'a worker has ended; replacing it')
      shard.worker = this.#takeSpare()
      this.#serve(shard)
    })
  }

  /** Never rejects: a worker that ends meanwhile is replaced. */
  async #startServing(worker: WorkerProcess, routes: ReadonlyMap<string, EgressRoute>): Promise<void> {
    const pending = [worker.request({ do: 'set-policy', policy: this.#policy })]
    for (const [id, route] of routes) {
      pending.push(worker.request({ do: 'put-machine', id, route }))
    }
    const results = await Promise.allSettled(pending)
    for (const result of results) {
      if (result.status === 'rejected' && !(result.reason instanceof WorkerEnded))
        this.#logger.error({ err: result.reason }, 'could not serve a machine again')
    }
  }

  /** When two workers end at once, the second has to wait for a cold start. */
  #takeSpare(): WorkerProcess {
    const worker = this.#spare ?? new WorkerProcess(this.#logger)
    this.#spare = undefined
    void this.#prepareSpare()
    return worker
  }

  async #prepareSpare(): Promise<void> {
    await delay(sparePauseMilliseconds, undefined, { signal: this.#closing.signal }).catch(() => {})
    if (!this.#hasSpare || this.#spare || this.#closing.signal.aborted) return
    this.#spare = new WorkerProcess(this.#logger)
    void this.#keepSpare(this.#spare)
  }

  async #keepSpare(spare: WorkerProcess): Promise<void> {
    await spare.ended
    if (this.#spare !== spare) return
    this.#spare = undefined
    await this.#prepareSpare()
  }
}
