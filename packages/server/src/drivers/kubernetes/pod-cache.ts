import { EventEmitter, once } from 'node:events'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { CoreV1Api, Informer, KubeConfig, ObjectCache, V1Pod } from '@kubernetes/client-node'

const retryMilliseconds = 1_000
/** One listener for each machine that starts, stops or is watched. */
const unlimited = 0

interface PodCacheOptions {
  readonly config: KubeConfig
  readonly api: CoreV1Api
  readonly namespace: string
  readonly selector: string
  readonly logger: Logger | undefined
}

/** The state of all pods of the installation, from one watch that resumes after interruptions. */
export class PodCache {
  readonly #informer: Informer<V1Pod> & ObjectCache<V1Pod>
  readonly #namespace: string
  readonly #changes = new EventEmitter().setMaxListeners(unlimited)
  #retry: NodeJS.Timeout | undefined
  #isClosed = false

  private constructor(informer: Informer<V1Pod> & ObjectCache<V1Pod>, namespace: string) {
    this.#informer = informer
    this.#namespace = namespace
  }

  /** Resolves when the cache contains every existing pod. */
  static async open({ config, api, namespace, selector, logger }: PodCacheOptions): Promise<PodCache> {
    const { makeInformer } = await import('@kubernetes/client-node')
    let problem: unknown
    const list = () => api.listNamespacedPod({ namespace, labelSelector: selector })
    const informer = makeInformer(config, `/api/v1/namespaces/${namespace}/pods`, list, selector)
    const cache = new PodCache(informer, namespace)
    for (const verb of ['add', 'update', 'delete'] as const) {
      informer.on(verb, (pod: V1Pod) => {
        forgetUnread(pod)
        cache.#changes.emit(pod.metadata?.name ?? '')
      })
    }
    informer.on('error', (error: unknown) => {
      problem = error
      if (cache.#isClosed) return
      logger?.warn({ reason: (error as Error).message }, 'the watch of pods was interrupted; resuming it')
      cache.#watchAgainLater()
    })
    await informer.start()
    if (problem) {
      await cache.close()
      throw problem
    }
    return cache
  }

  get(name: string): V1Pod | undefined {
    return this.#informer.get(name, this.#namespace)
  }

  /** Calls `hear` for every change of a pod, including its deletion. */
  onChange(name: string, hear: () => void): Disposable {
    this.#changes.on(name, hear)
    return { [Symbol.dispose]: () => this.#changes.off(name, hear) }
  }

  /** Resolves at the next change of a pod. */
  async nextChange(name: string, signal: AbortSignal): Promise<void> {
    await once(this.#changes, name, { signal })
  }

  #watchAgainLater(): void {
    this.#retry = setTimeout(() => void this.#informer.start(), retryMilliseconds)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#retry)
    await this.#informer.stop()
  }
}

/**
 * Removes unread parts: with thousands of pods they would be most of the server's memory. The informer keeps this very
 * object.
 */
function forgetUnread(pod: V1Pod): void {
  delete pod.metadata?.managedFields
  if (pod.spec) {
    pod.spec = {
      containers: pod.spec.containers.map(({ name, resources }) => ({ name, ...(resources && { resources }) })),
    }
  }
}
