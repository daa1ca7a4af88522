import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import type { MachineId } from '@berth/contract/common/ids.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { retry } from '@berth/runtime/async/retry.ts'
import { CoreV1Api, Exec, KubeConfig } from '@kubernetes/client-node'
import type { DriverTestbed } from '../../drivers/driver-suite.ts'
import { hasStatus } from '../../drivers/kubernetes/api-error.ts'
import { CertificateAuthority } from '../../drivers/kubernetes/certificates.ts'
import { Cluster } from '../../drivers/kubernetes/cluster.ts'
import { IdentityRenewal } from '../../drivers/kubernetes/identity-renewal.ts'
import type { Installation } from '../../drivers/kubernetes/installation.ts'
import { KubernetesDriver } from '../../drivers/kubernetes/kubernetes-driver.ts'
import { containerNames, podName, selectorOf } from '../../drivers/kubernetes/machine-pod.ts'
import type { KubernetesOptions } from '../../drivers/kubernetes-options.ts'

const namespace = 'berth-test'
const image = process.env.BERTH_TEST_KUBERNETES_IMAGE ?? ''

/** Why there is no cluster for tests. Undefined if there is one. */
export const noCluster =
  process.env.BERTH_TEST_KUBERNETES === '1' && image !== ''
    ? undefined
    : 'no cluster: set BERTH_TEST_KUBERNETES=1, KUBECONFIG and BERTH_TEST_KUBERNETES_IMAGE, or run ./berth test --kubernetes'

/** A separate installation in the cluster of KUBECONFIG. */
export class KubernetesTestbed implements DriverTestbed {
  readonly namespace = namespace
  readonly serverId = 'test'
  readonly installation: Installation
  readonly api: CoreV1Api
  readonly #config: KubeConfig
  readonly #drivers: KubernetesDriver[] = []

  private constructor(config: KubeConfig, installation: Installation) {
    this.#config = config
    this.api = config.makeApiClient(CoreV1Api)
    this.installation = installation
  }

  static async open(): Promise<KubernetesTestbed> {
    const config = new KubeConfig()
    config.loadFromDefault()
    const { certificate, key } = await CertificateAuthority.create(systemClock.now())
    const authority = await CertificateAuthority.load(certificate, new Uint8Array(key))
    const testbed = new KubernetesTestbed(config, { name: randomBytes(6).toString('hex'), authority })
    await testbed.api.createNamespace({ body: { metadata: { name: namespace } } }).catch((error: unknown) => {
      if (!hasStatus(error, 409)) throw error
    })
    return testbed
  }

  /** A namespace of its own with a quota. Nothing may be made in it before the quota is counted. */
  async createNamespace(hard: Readonly<Record<string, string>>): Promise<string> {
    const name = `${namespace}-${randomBytes(4).toString('hex')}`
    const quota = { metadata: { name: 'quota' }, spec: { hard: { ...hard } } }
    await this.api.createNamespace({ body: { metadata: { name } } })
    await this.api.createNamespacedResourceQuota({ namespace: name, body: quota })
    const isCounted = async () => {
      const { status } = await this.api.readNamespacedResourceQuota({ namespace: name, name: 'quota' })
      if (status?.hard === undefined) throw new Error('the quota is not counted yet')
    }
    await retry(isCounted, { firstPauseMilliseconds: 50, longestPauseMilliseconds: 500, patienceMilliseconds: 30_000 })
    return name
  }

  async openCluster(changes: Partial<KubernetesOptions> = {}): Promise<Cluster> {
    const defaults = { runtimeClass: undefined, owner: undefined, seccompProfile: undefined }
    return Cluster.open({
      options: {
        ...defaults,
        namespace,
        image,
        cpuRequest: '10m',
        memoryRequestMiB: undefined,
        pendingSeconds: 1,
        ...changes,
      },
      installation: this.installation,
      serverId: this.serverId,
      diskBytes: 512 * 1024 ** 2,
      clock: systemClock,
      logger: undefined,
    })
  }

  async openDriver(changes: Partial<KubernetesOptions> = {}): Promise<KubernetesDriver> {
    const cluster = await this.openCluster(changes)
    const renewal = new IdentityRenewal({ renew: () => cluster.renewIdentities(), logger: undefined })
    const driver = new KubernetesDriver(cluster, renewal, changes.pendingSeconds ?? 1)
    this.#drivers.push(driver)
    return driver
  }

  /** Runs a command in a container of the machine, outside of its sandbox. */
  async runIn(machineId: MachineId, ...command: readonly string[]): Promise<string> {
    const output = new PassThrough()
    const chunks: string[] = []
    output.on('data', (chunk: Buffer) => chunks.push(chunk.toString()))
    const exec = new Exec(this.#config)
    const name = podName(machineId)
    const socket = await exec.exec(namespace, name, containerNames.machine, [...command], output, output, null, false)
    await once(socket as never, 'close')
    return chunks.join('')
  }

  async killMachine(machineId: MachineId): Promise<void> {
    await this.runIn(machineId, '/bin/sh', '-c', 'kill -TERM 1')
  }

  async remains(): Promise<readonly string[]> {
    const selected = { namespace, labelSelector: selectorOf(this.installation.name) }
    const [pods, secrets] = await Promise.all([
      this.api.listNamespacedPod(selected),
      this.api.listNamespacedSecret(selected),
    ])
    return [
      ...pods.items.map(({ metadata }) => `pod ${metadata?.name}`),
      ...secrets.items.map(({ metadata }) => `secret ${metadata?.name}`),
    ]
  }

  async close(): Promise<void> {
    for (const driver of this.#drivers) {
      for (const machineId of await driver.list()) await driver.stop(machineId)
      driver.close()
    }
  }
}
