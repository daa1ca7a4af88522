import { EventEmitter, once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import {
  CoreV1Api,
  type Informer,
  type KubeConfig,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  type V1Pod,
} from '@kubernetes/client-node'

const name = 'watched'
const label = 'app.kubernetes.io/name'
const pauseMilliseconds = 250
const mergePatch = setHeaderOptions('Content-Type', PatchStrategy.MergePatch)

/** How long it takes until a watch reports a change of a pod, in a process that is otherwise idle. */
export class WatchLag {
  readonly #informer: Informer<V1Pod>
  /** Emits the name of each changed pod. */
  readonly #changes = new EventEmitter()
  readonly #api: CoreV1Api
  readonly #namespace: string
  #hasStopped = false

  private constructor(informer: Informer<V1Pod>, api: CoreV1Api, namespace: string) {
    this.#informer = informer
    this.#api = api
    this.#namespace = namespace
    informer.on('update', (pod) => void this.#changes.emit(pod.metadata?.name ?? ''))
    informer.on('error', (error: unknown) => {
      if (!this.#hasStopped) this.#changes.emit('error', error)
    })
  }

  static async open(config: KubeConfig, namespace: string): Promise<WatchLag> {
    const api = config.makeApiClient(CoreV1Api)
    const containers = [{ name, image: 'localhost/fake:1' }]
    // It is never scheduled, so nobody else changes it.
    const spec = { containers, nodeSelector: { [label]: name }, schedulerName: 'nobody' }
    const metadata = { name, labels: { [label]: name } }
    const labelSelector = `${label} in (${name}, berth-machine)`
    const list = () => api.listNamespacedPod({ namespace, labelSelector })
    const informer = makeInformer(config, `/api/v1/namespaces/${namespace}/pods`, list, labelSelector)
    const lag = new WatchLag(informer, api, namespace)
    await api.createNamespacedPod({ namespace, body: { metadata, spec } })
    await informer.start()
    return lag
  }

  /** Measures until the signal aborts. */
  async measure(signal: AbortSignal): Promise<readonly number[]> {
    const lags: number[] = []
    while (!signal.aborted) {
      const [changed, begin] = [once(this.#changes, name, { signal: AbortSignal.timeout(60_000) }), performance.now()]
      const body = { metadata: { annotations: { 'berth.dev/round': `${begin}` } } }
      await this.#api.patchNamespacedPod({ name, namespace: this.#namespace, body }, mergePatch)
      await changed
      lags.push(performance.now() - begin)
      await delay(pauseMilliseconds, undefined, { signal }).catch(() => {})
    }
    return lags
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#hasStopped = true
    await this.#informer.stop()
    await this.#api.deleteNamespacedPod({ name, namespace: this.#namespace, gracePeriodSeconds: 0 })
  }
}
