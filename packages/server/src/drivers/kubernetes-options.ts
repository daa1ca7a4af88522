import { StartError } from '../start-error.ts'

/** The operator's settings for machines that are pods. */
export interface KubernetesOptions {
  /** When absent, the namespace of this server's pod or of the client's configuration. */
  readonly namespace: string | undefined
  readonly image: string
  readonly runtimeClass: string | undefined
  /** The object that owns the machines, as `Kind/name`. The cluster removes them with it. */
  readonly owner: { readonly kind: 'ConfigMap' | 'Deployment'; readonly name: string } | undefined
  /**
   * A file below the kubelet's folder of profiles. When absent, only the filter of the sandbox within the container
   * applies.
   */
  readonly seccompProfile: string | undefined
  readonly cpuRequest: string
  /** The most memory that a machine requests. When absent, machines request as much as they may use. */
  readonly memoryRequestMiB: number | undefined
  /** How long a pod may be unschedulable. */
  readonly pendingSeconds: number
}

const defaultCpuRequest = '250m'
const minMemoryRequestMiB = 256 // What a waiting machine requests.
const defaultPendingSeconds = 3
const maxPendingSeconds = 40 // The limit for the start of a session is slightly longer.

/** Undefined without an image. Throws a StartError that names the variable and its rule. */
export function readKubernetesOptions(text: (name: string) => string | undefined): KubernetesOptions | undefined {
  const image = text('BERTH_KUBERNETES_IMAGE')
  if (image === undefined) return undefined
  return {
    image,
    namespace: text('BERTH_KUBERNETES_NAMESPACE'),
    runtimeClass: text('BERTH_KUBERNETES_RUNTIME_CLASS'),
    owner: ownerOf(text('BERTH_KUBERNETES_OWNER')),
    seccompProfile: text('BERTH_KUBERNETES_SECCOMP_PROFILE'),
    cpuRequest: quantity(text('BERTH_KUBERNETES_CPU_REQUEST') ?? defaultCpuRequest),
    memoryRequestMiB: mebibytes(text('BERTH_KUBERNETES_MEMORY_REQUEST')),
    pendingSeconds: seconds(text('BERTH_KUBERNETES_PENDING_SECONDS') ?? String(defaultPendingSeconds)),
  }
}

function ownerOf(value: string | undefined): KubernetesOptions['owner'] {
  if (value === undefined) return undefined
  const [, kind, name] = /^(ConfigMap|Deployment)\/([a-z0-9.-]+)$/.exec(value) ?? []
  if (kind === undefined || name === undefined) {
    throw new StartError('BERTH_KUBERNETES_OWNER must be ConfigMap/NAME or Deployment/NAME', 64)
  }
  return { kind: kind as 'ConfigMap' | 'Deployment', name }
}

function quantity(value: string): string {
  if (/^\d+m$|^\d+(\.\d{1,3})?$/.test(value)) return value
  throw new StartError('BERTH_KUBERNETES_CPU_REQUEST must be a number of processors, such as 250m or 0.5', 64)
}

function mebibytes(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  const [, count, unit] = /^(\d{1,6})(Mi|Gi)$/.exec(value) ?? []
  const size = Number(count) * (unit === 'Gi' ? 1024 : 1)
  if (size >= minMemoryRequestMiB) return size
  throw new StartError(
    `BERTH_KUBERNETES_MEMORY_REQUEST must be at least ${minMemoryRequestMiB}Mi, such as 512Mi or 1Gi`,
    64,
  )
}

function seconds(value: string): number {
  if (/^\d{1,2}$/.test(value) && Number(value) <= maxPendingSeconds) return Number(value)
  throw new StartError(`BERTH_KUBERNETES_PENDING_SECONDS must be a whole number up to ${maxPendingSeconds}`, 64)
}
