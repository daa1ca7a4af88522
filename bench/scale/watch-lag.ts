import { setTimeout as delay } from 'node:timers/promises'
import { CoreV1Api, type KubeConfig, PatchStrategy, setHeaderOptions } from '@kubernetes/client-node'
import { PodCache } from '../../packages/server/src/drivers/kubernetes/pod-cache.ts'

const name = 'watched'
const label = 'app.kubernetes.io/name'
const pauseMilliseconds = 250
const mergePatch = setHeaderOptions('Content-Type', PatchStrategy.MergePatch)

/** How long after a change of a pod its watch tells it, to a process that has little else to do. */
export class WatchLag {
  readonly #cache: PodCache
  readonly #api: CoreV1Api
  readonly #namespace: string

  private constructor(cache: PodCache, api: CoreV1Api, namespace: string) {
    this.#cache = cache
    this.#api = api
    this.#namespace = namespace
  }

  static async open(config: KubeConfig, namespace: string): Promise<WatchLag> {
    const api = config.makeApiClient(CoreV1Api)
    const containers = [{ name, image: 'localhost/fake:1' }]
    // It fits nowhere, so that nobody else changes it.
    const spec = { containers, nodeSelector: { [label]: name }, schedulerName: 'nobody' }
    const metadata = { name, labels: { [label]: name } }
    const selector = `${label} in (${name}, berth-machine)`
    const cache = await PodCache.open({ config, api, namespace, selector, logger: undefined })
    await api.createNamespacedPod({ namespace, body: { metadata, spec } })
    return new WatchLag(cache, api, namespace)
  }

  /** Measures until the signal. */
  async measure(signal: AbortSignal): Promise<readonly number[]> {
    const lags: number[] = []
    while (!signal.aborted) {
      const [changed, begin] = [this.#cache.nextChange(name, AbortSignal.timeout(60_000)), performance.now()]
      const body = { metadata: { annotations: { 'berth.dev/round': `${begin}` } } }
      await this.#api.patchNamespacedPod({ name, namespace: this.#namespace, body }, mergePatch)
      await changed
      lags.push(performance.now() - begin)
      await delay(pauseMilliseconds, undefined, { signal }).catch(() => {})
    }
    return lags
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cache.close()
    await this.#api.deleteNamespacedPod({ name, namespace: this.#namespace, gracePeriodSeconds: 0 })
  }
}
