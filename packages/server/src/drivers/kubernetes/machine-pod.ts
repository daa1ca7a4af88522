import { identityFiles, inPod, podPorts } from '@berth/contract/agent/machine/machine-pod.ts'
import type { MachineId } from '@berth/contract/common/ids.ts'
import type { V1Container, V1OwnerReference, V1Pod, V1SecurityContext } from '@kubernetes/client-node'
import type { MachineSpec } from '../driver.ts'
import type { KubernetesOptions } from '../kubernetes-options.ts'
import { limitsOf } from '../local/sandbox/launch-machine.ts'

export const containerNames = { machine: 'machine', egress: 'egress' } as const
export const labels = {
  name: 'app.kubernetes.io/name',
  installation: 'berth.dev/installation',
  machine: 'berth.dev/machine',
  /** The server that started it. */
  server: 'berth.dev/server',
} as const
export const nameOfMachines = 'berth-machine'

/** A single signal ends the whole machine, so there is nothing to wait for. */
export const graceSeconds = 1
/** How long a node may be unavailable before its machines count as lost. */
const lostNodeSeconds = 5
const users = { machine: 1000, egress: 1001 } as const
/** Requests of a waiting machine, which is frozen as soon as its browser is up. */
const lowRequests = { cpu: '1m', memory: '256Mi' } as const
const egressMemory = { request: '96Mi', limit: '384Mi' } as const
const egressCpu = '5m'
const mebibyte = 1024 ** 2

export interface PodOptions {
  readonly installation: string
  readonly serverId: string
  readonly options: Pick<
    KubernetesOptions,
    'image' | 'runtimeClass' | 'seccompProfile' | 'cpuRequest' | 'memoryRequestMiB'
  >
  readonly owners: readonly V1OwnerReference[]
  /** How much a machine may write. */
  readonly diskBytes: number
  /**
   * Whether the cluster can change the requests of running pods. Otherwise waiting machines have full requests from the
   * start.
   */
  readonly canResize: boolean
}

export function podName(machineId: MachineId): string {
  return `berth-${machineId}`
}

export function labelsOf(
  machineId: MachineId,
  { installation, serverId }: Pick<PodOptions, 'installation' | 'serverId'>,
): Record<string, string> {
  return {
    [labels.name]: nameOfMachines,
    [labels.installation]: installation,
    [labels.machine]: machineId,
    [labels.server]: serverId,
  }
}

/** Selects everything that belongs to the machines of an installation. */
export function selectorOf(installation: string): string {
  return `${labels.name}=${nameOfMachines},${labels.installation}=${installation}`
}

/** The pod of a machine. Its secret has the same name. */
export function machinePod(spec: MachineSpec, podOptions: PodOptions): V1Pod {
  const { installation, options, owners } = podOptions
  const name = podName(spec.id)
  const podLabels = labelsOf(spec.id, podOptions)
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      labels: podLabels,
      ownerReferences: [...owners],
      // A session cannot be moved, so other pods should be evicted first.
      annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' },
    },
    spec: {
      ...(options.runtimeClass !== undefined && { runtimeClassName: options.runtimeClass }),
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: graceSeconds,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      // Root in the pod has no rights on the node.
      hostUsers: false,
      // Resolves names like the node: a machine must not use names of the cluster.
      dnsPolicy: 'Default',
      securityContext: {
        runAsNonRoot: true,
        ...(options.seccompProfile !== undefined && {
          seccompProfile: { type: 'Localhost', localhostProfile: options.seccompProfile },
        }),
      },
      tolerations: ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].map((key) => ({
        key,
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: lostNodeSeconds,
      })),
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: 'kubernetes.io/hostname',
          whenUnsatisfiable: 'ScheduleAnyway',
          labelSelector: { matchLabels: { [labels.name]: nameOfMachines, [labels.installation]: installation } },
        },
      ],
      initContainers: [egressContainer(options)],
      containers: [machineContainer(spec, podOptions)],
      volumes: [
        {
          name: 'spec',
          // The machine's user reads it and does not own it.
          secret: { secretName: name, items: [{ key: 'spec.json', path: 'spec.json' }], defaultMode: 0o444 },
        },
        {
          name: 'identity',
          secret: {
            secretName: name,
            items: Object.values(identityFiles).map((file) => ({ key: file, path: file })),
            defaultMode: 0o444,
          },
        },
        { name: 'egress', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
        { name: 'egress-tmp', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
        { name: 'machine', emptyDir: { sizeLimit: `${Math.ceil(podOptions.diskBytes / mebibyte)}Mi` } },
      ],
    },
  }
}

function machineContainer(spec: MachineSpec, { options, canResize }: PodOptions): V1Container {
  const memory = `${Math.ceil(limitsOf(spec.memory).memoryBytes / mebibyte)}Mi`
  const requests = requestsOf(memory, options)
  return {
    name: containerNames.machine,
    image: options.image,
    imagePullPolicy: 'IfNotPresent',
    command: [...inPod.startMachine],
    resources: {
      requests: spec.hasLowPriority && canResize ? lowRequests : requests,
      limits: { memory },
    },
    // Requests change while the machine runs.
    resizePolicy: ['cpu', 'memory'].map((resourceName) => ({ resourceName, restartPolicy: 'NotRequired' })),
    securityContext: {
      ...unprivileged(users.machine),
      // The sandbox has its own view of processes, which it can only mount if the container's is unmasked.
      procMount: 'Unmasked',
    },
    volumeMounts: [
      { name: 'spec', mountPath: '/run/berth/spec', readOnly: true },
      { name: 'egress', mountPath: inPod.egress, readOnly: true },
      { name: 'machine', mountPath: inPod.machine },
    ],
  }
}

/** The requests of a machine with this limit of memory while a session uses it. */
export function requestsOf(
  memoryLimit: string,
  {
    cpuRequest,
    memoryRequestMiB = Number.POSITIVE_INFINITY,
  }: Pick<KubernetesOptions, 'cpuRequest' | 'memoryRequestMiB'>,
): { readonly cpu: string; readonly memory: string } {
  return { cpu: cpuRequest, memory: `${Math.min(Number.parseInt(memoryLimit, 10), memoryRequestMiB)}Mi` }
}

/** Runs from before the machine's start until after its end, and is restarted when it ends. */
function egressContainer({ image }: PodOptions['options']): V1Container {
  return {
    name: containerNames.egress,
    image,
    imagePullPolicy: 'IfNotPresent',
    command: [...inPod.startEgress],
    restartPolicy: 'Always',
    ports: [{ name: 'servers', containerPort: podPorts.servers }],
    resources: {
      requests: { cpu: egressCpu, memory: egressMemory.request },
      limits: { memory: egressMemory.limit },
    },
    securityContext: unprivileged(users.egress),
    volumeMounts: [
      { name: 'identity', mountPath: inPod.identity, readOnly: true },
      { name: 'egress', mountPath: inPod.egress },
      { name: 'egress-tmp', mountPath: '/tmp' },
    ],
  }
}

function unprivileged(user: number): V1SecurityContext {
  return {
    runAsUser: user,
    runAsGroup: user,
    runAsNonRoot: true,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  }
}
