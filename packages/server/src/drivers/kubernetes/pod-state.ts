import type { V1ContainerStatus, V1Pod } from '@kubernetes/client-node'
import { containerNames } from './machine-pod.ts'

/**
 * The state of a pod, for code that waits for its machine. `starting` → `running` → `ended`; `starting` → `ended` when
 * it cannot start. `pending`: it currently fits on no node.
 */
export type PodState =
  | { readonly state: 'starting' | 'running' }
  | { readonly state: 'pending'; readonly reason: string }
  | { readonly state: 'ended'; readonly reason: string; readonly isLackOfRoom: boolean }

/** Reasons of a waiting container that will not resolve by themselves, or not in time. */
const failedWaits = new Set([
  'CreateContainerConfigError',
  'CreateContainerError',
  'CrashLoopBackOff',
  'ErrImageNeverPull',
  'ErrImagePull',
  'ImageInspectError',
  'ImagePullBackOff',
  'InvalidImageName',
  'RunContainerError',
])

/** Reasons of a failed pod which mean that the node had no room for it, or needed the room back. */
const lackOfRoom = new Set(['Evicted', 'OutOfcpu', 'OutOfmemory', 'OutOfpods', 'OutOfephemeral-storage', 'Preempting'])

export function podState(pod: V1Pod): PodState {
  const { status, metadata } = pod
  if (status?.phase === 'Failed' || status?.phase === 'Succeeded') return endedPod(pod)
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
  const machine = status?.containerStatuses?.find(({ name }) => name === containerNames.machine)
  if (machine?.state?.terminated) return ended(terminationOf(machine))
  // Somebody else deleted it before this server did: a drained or lost node, a preemption, an administrator.
  if (metadata?.deletionTimestamp) return ended(disruptionOf(pod) ?? 'its pod was deleted')
  const waiting = statuses.map(({ state }) => state?.waiting).find((wait) => failedWaits.has(wait?.reason ?? ''))
  if (waiting) return ended(sentence(waiting.reason, waiting.message))
  if (status?.podIP && machine?.state?.running) return { state: 'running' }
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (scheduled?.status === 'False' && scheduled.reason === 'Unschedulable') {
    return { state: 'pending', reason: scheduled.message ?? 'no node has room for it' }
  }
  return { state: 'starting' }
}

function endedPod(pod: V1Pod): PodState {
  const { reason, message, containerStatuses } = pod.status ?? {}
  if (reason) return ended(sentence(reason, message), lackOfRoom.has(reason))
  const machine = containerStatuses?.find(({ name }) => name === containerNames.machine)
  return ended(disruptionOf(pod) ?? (machine ? terminationOf(machine) : 'its pod ended'))
}

/** The reason why the cluster itself ends a pod. */
function disruptionOf({ status }: V1Pod): string | undefined {
  const disruption = status?.conditions?.find(({ type }) => type === 'DisruptionTarget')
  return disruption?.status === 'True' ? sentence(disruption.reason, disruption.message) : undefined
}

function terminationOf({ state }: V1ContainerStatus): string {
  const { reason, exitCode, message } = state?.terminated ?? {}
  if (reason === 'OOMKilled') return 'OOMKilled: it reached its memory limit'
  return sentence(reason ?? 'Error', message ?? `its first process ended with ${exitCode}`)
}

function ended(reason: string, isLackOfRoom = false): PodState {
  return { state: 'ended', reason, isLackOfRoom }
}

function sentence(reason: string | undefined, message: string | undefined): string {
  return [reason, message].filter(Boolean).join(': ')
}
