import { readFile } from 'node:fs/promises'
import { identityFiles } from '@berth/contract/agent/machine/machine-pod.ts'
import { type MachineId, newId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import {
  type CoreV1Api,
  type KubeConfig,
  PatchStrategy,
  setHeaderOptions,
  type V1OwnerReference,
  type V1Pod,
  type V1Secret,
} from '@kubernetes/client-node'
import type { MachineSpec } from '../driver.ts'
import type { KubernetesOptions } from '../kubernetes-options.ts'
import { trialSpec } from '../trial-spec.ts'
import { apiMessage, creationError, hasStatus } from './api-error.ts'
import { type Identity, identityLifetimeMilliseconds } from './certificates.ts'
import { ClusterConfig, openApis } from './client.ts'
import type { Installation } from './installation.ts'
import {
  containerNames,
  graceSeconds,
  labels,
  labelsOf,
  machinePod,
  type PodOptions,
  podName,
  requestsOf,
  selectorOf,
} from './machine-pod.ts'
import { PodCache } from './pod-cache.ts'
import { PodLink } from './pod-link.ts'

const namespaceFile = '/var/run/secrets/kubernetes.io/serviceaccount/namespace'
const lookAgainMilliseconds = 1_000
/** On a secret: when its identity must be renewed. */
export const renewalAnnotation = 'berth.dev/renew-after'

export interface ClusterOptions {
  readonly options: KubernetesOptions
  readonly installation: Installation
  /** The server that starts machines here. */
  readonly serverId: string
  readonly diskBytes: number
  readonly clock: Clock
  readonly logger: Logger | undefined
}

interface ClusterParts extends ClusterOptions {
  readonly api: CoreV1Api
  readonly namespace: string
  readonly owners: readonly V1OwnerReference[]
  readonly cache: PodCache
}

/** The driver's requests to the cluster's API. */
export class Cluster {
  readonly cache: PodCache
  readonly link: PodLink
  readonly image: string
  readonly #api: CoreV1Api
  readonly #namespace: string
  readonly #installation: Installation
  #podOptions: PodOptions
  readonly #logger: Logger | undefined
  readonly #clock: Clock

  private constructor({ api, namespace, owners, cache, ...parts }: ClusterParts) {
    const { installation, serverId, options, diskBytes, clock, logger } = parts
    this.cache = cache
    this.image = options.image
    this.link = new PodLink(installation.authority, clock)
    this.#api = api
    this.#namespace = namespace
    this.#installation = installation
    this.#podOptions = { installation: installation.name, serverId, options, owners, diskBytes, canResize: true }
    this.#logger = logger
    this.#clock = clock
  }

  /** Throws a readable message when the cluster cannot be used. */
  static async open(clusterOptions: ClusterOptions): Promise<Cluster> {
    const { options, installation, logger } = clusterOptions
    const config = new ClusterConfig()
    const { core, apps } = openApis(config)
    try {
      const namespace = options.namespace ?? (await ownNamespace(config))
      const owners = options.owner ? [await readOwner({ core, apps }, namespace, options.owner)] : []
      const selector = selectorOf(installation.name)
      const cache = await PodCache.open({ config, api: core, namespace, selector, logger })
      return new Cluster({ ...clusterOptions, api: core, namespace, owners, cache })
    } catch (error) {
      throw new Error(`the Kubernetes cluster cannot be used: ${apiMessage(error)}`, { cause: error })
    }
  }

  async close(): Promise<void> {
    await this.cache.close()
  }

  /** Makes the API server validate a pod like that of a session, without creating it. */
  async findProblem(): Promise<string | undefined> {
    const pod = machinePod(trialSpec(newId('machine', this.#clock.now())), this.#podOptions)
    try {
      await this.#api.createNamespacedPod({ namespace: this.#namespace, body: pod, dryRun: 'All' })
      return undefined
    } catch (error) {
      return `The cluster refuses pods: ${apiMessage(error)}`
    }
  }

  /** Rejects if a machine with this id exists. */
  async createSecret(spec: MachineSpec): Promise<void> {
    const now = this.#clock.now()
    const identity = await this.#installation.authority.issueToMachine(spec.id, now)
    const body: V1Secret = {
      metadata: {
        name: podName(spec.id),
        labels: labelsOf(spec.id, this.#podOptions),
        ownerReferences: [...this.#podOptions.owners],
        annotations: renewalOf(now),
      },
      type: 'Opaque',
      stringData: { 'spec.json': JSON.stringify(spec), ...identityData(identity) },
    }
    await this.#api.createNamespacedSecret({ namespace: this.#namespace, body }).catch((error: unknown) => {
      if (hasStatus(error, 409)) throw new Error(`the machine ${spec.id} already exists`)
      throw creationError(error)
    })
  }

  /** Resolves with the uid of the pod. */
  async createPod(spec: MachineSpec): Promise<string> {
    const body = machinePod(spec, this.#podOptions)
    const pod = await this.#api
      .createNamespacedPod({ namespace: this.#namespace, body })
      .catch((error: unknown) => Promise.reject(creationError(error)))
    return pod.metadata?.uid as string
  }

  /** Makes the pod own the secret, so that the cluster removes both together. */
  async giveSecretToPod(machineId: MachineId, uid: string): Promise<void> {
    const name = podName(machineId)
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name, uid }]
    await this.#patchSecret(name, { metadata: { ownerReferences } })
  }

  /** Issues new identities to machines whose identities are due. Of several servers, one succeeds. */
  async renewIdentities(): Promise<void> {
    const now = this.#clock.now()
    for (const { metadata } of await this.#listSecrets()) {
      const { name, labels: own, annotations, resourceVersion } = metadata ?? {}
      const due = annotations?.[renewalAnnotation]
      if (!name || !own?.[labels.machine] || (due && new Date(due) > now)) continue
      const identity = await this.#installation.authority.issueToMachine(own[labels.machine] as MachineId, now)
      const data = Object.fromEntries(
        Object.entries(identityData(identity)).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
      )
      const changed = { metadata: { resourceVersion, annotations: renewalOf(now) }, data }
      await this.#patchSecret(name, changed).catch((error: unknown) => {
        // Another server was faster, or the machine is gone.
        if (!hasStatus(error, 404, 409)) throw error
      })
    }
  }

  /** Everything that belongs to a machine has its label. */
  async list(): Promise<readonly MachineId[]> {
    return [...(await this.listByServer()).keys()]
  }

  /** Includes the server that started each. Pods of earlier versions do not contain it. */
  async listByServer(): Promise<ReadonlyMap<MachineId, string | undefined>> {
    const [pods, secrets] = await Promise.all([this.#listPods(), this.#listSecrets()])
    return new Map(
      [...secrets, ...pods].flatMap(({ metadata }) => {
        const { [labels.machine]: id, [labels.server]: server } = metadata?.labels ?? {}
        return id === undefined ? [] : [[id as MachineId, server] as const]
      }),
    )
  }

  readPod(machineId: MachineId): Promise<V1Pod | undefined> {
    return unlessAbsent(this.#api.readNamespacedPod({ name: podName(machineId), namespace: this.#namespace }))
  }

  /**
   * Resolves when the pod is gone. If its node does not respond within the limit, the pod is removed from the cluster.
   */
  async deletePod(machineId: MachineId, limitMilliseconds: number): Promise<void> {
    const name = podName(machineId)
    const remove = (gracePeriodSeconds: number) =>
      unlessAbsent(this.#api.deleteNamespacedPod({ name, namespace: this.#namespace, gracePeriodSeconds }))
    if ((await remove(graceSeconds)) === undefined) return
    const deadline = performance.now() + limitMilliseconds
    let isForced = false
    // The watch reports the end of a pod that it has seen. Other pods are requested from the cluster.
    let isWatched = this.cache.get(name) !== undefined
    while (isWatched ? this.cache.get(name) : await this.readPod(machineId)) {
      if (!isForced && performance.now() > deadline) {
        isForced = true
        await remove(0)
        isWatched = false
        continue
      }
      const change = this.cache.nextChange(name, AbortSignal.timeout(lookAgainMilliseconds))
      isWatched = await change.then(
        () => true,
        () => false,
      )
    }
  }

  async deleteSecret(machineId: MachineId): Promise<void> {
    await unlessAbsent(this.#api.deleteNamespacedSecret({ name: podName(machineId), namespace: this.#namespace }))
  }

  /** Empty for a container that has not run. */
  async readLog(machineId: MachineId, container: string, lines: number): Promise<string> {
    const name = podName(machineId)
    const log = this.#api.readNamespacedPodLog({ name, namespace: this.#namespace, container, tailLines: lines })
    return (await log.catch(() => '')) ?? ''
  }

  /**
   * Raises the resource requests of a machine in place when it is used. If its node has no room for them, the machine
   * continues without. When a cluster does not support it, later pods request them from the start.
   */
  async raiseRequests(machineId: MachineId): Promise<void> {
    const name = podName(machineId)
    const containers = this.cache.get(name)?.spec?.containers ?? []
    const memory = containers.find((container) => container.name === containerNames.machine)?.resources?.limits?.memory
    if (memory === undefined) return
    const requests = requestsOf(memory, this.#podOptions.options)
    const body = { spec: { containers: [{ name: containerNames.machine, resources: { requests } }] } }
    await this.#api
      .patchNamespacedPodResize({ name, namespace: this.#namespace, body }, strategicMerge)
      .catch((error: unknown) => {
        if (!hasStatus(error, 400, 403, 404, 409, 422)) throw error
        // 404 and 409 mean that the pod is gone or has just changed, unless the cluster lacks the feature.
        if (hasStatus(error, 409) || !this.#podOptions.canResize || this.cache.get(name) === undefined) return
        this.#podOptions = { ...this.#podOptions, canResize: false }
        const reason = apiMessage(error)
        this.#logger?.warn(
          { reason },
          'the cluster cannot resize pods: machines of the reserve have full requests from the start',
        )
      })
  }

  async #listPods(): Promise<readonly V1Pod[]> {
    const labelSelector = selectorOf(this.#installation.name)
    return (await this.#api.listNamespacedPod({ namespace: this.#namespace, labelSelector })).items
  }

  async #listSecrets(): Promise<readonly V1Secret[]> {
    const labelSelector = selectorOf(this.#installation.name)
    return (await this.#api.listNamespacedSecret({ namespace: this.#namespace, labelSelector })).items
  }

  async #patchSecret(name: string, body: object): Promise<void> {
    await this.#api.patchNamespacedSecret({ name, namespace: this.#namespace, body }, mergePatch)
  }
}

const strategicMerge = setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch)
const mergePatch = setHeaderOptions('Content-Type', PatchStrategy.MergePatch)

async function unlessAbsent<Value>(answer: Promise<Value>): Promise<Value | undefined> {
  return answer.catch((error: unknown) => {
    if (hasStatus(error, 404)) return undefined
    throw new Error(apiMessage(error), { cause: error })
  })
}

function identityData({ authority, certificate, key }: Identity): Record<string, string> {
  return { [identityFiles.authority]: authority, [identityFiles.certificate]: certificate, [identityFiles.key]: key }
}

function renewalOf(now: Date): Record<string, string> {
  return { [renewalAnnotation]: new Date(now.getTime() + identityLifetimeMilliseconds / 2).toISOString() }
}

async function ownNamespace(config: KubeConfig): Promise<string> {
  const mounted = await readFile(namespaceFile, 'utf8').catch(() => '')
  return mounted.trim() || config.getContextObject(config.getCurrentContext())?.namespace || 'default'
}

async function readOwner(
  { core, apps }: ReturnType<typeof openApis>,
  namespace: string,
  { kind, name }: NonNullable<KubernetesOptions['owner']>,
): Promise<V1OwnerReference> {
  const isDeployment = kind === 'Deployment'
  const owner = isDeployment
    ? await apps.readNamespacedDeployment({ name, namespace })
    : await core.readNamespacedConfigMap({ name, namespace })
  return { apiVersion: isDeployment ? 'apps/v1' : 'v1', kind, name, uid: owner.metadata?.uid as string }
}
