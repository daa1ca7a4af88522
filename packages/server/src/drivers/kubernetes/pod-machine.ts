import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { inPod, podProtocols } from '@berth/contract/agent/machine/machine-pod.ts'
import type { MachineId } from '@berth/contract/common/ids.ts'
import type { EgressSocket, Machine } from '../driver.ts'
import { podName } from './machine-pod.ts'
import type { PodCache } from './pod-cache.ts'
import type { PodAddress, PodLink } from './pod-link.ts'
import { podState } from './pod-state.ts'

/** The machine and egress run as different users. */
const egressSocket: EgressSocket = { path: join(inPod.egress, 'egress.sock'), mode: 0o666 }

interface PodMachineOptions {
  readonly id: MachineId
  /** The uid of the pod: another pod with the same name would be another machine. */
  readonly uid: string
  readonly cache: PodCache
  readonly link: PodLink
}

/** A machine that is a pod, started by this server or by another. */
export class PodMachine implements Machine {
  readonly id: MachineId
  readonly egressSocket = egressSocket
  readonly ended: Promise<void>
  /** The cluster's reason for its end. */
  endReason: string | undefined
  readonly #options: PodMachineOptions
  readonly #watch: Disposable
  readonly #settle: () => void
  #isSeen = false

  constructor(options: PodMachineOptions) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.id = options.id
    this.ended = promise
    this.#settle = resolve
    this.#options = options
    this.#watch = options.cache.onChange(podName(options.id), () => this.#look())
    this.#look()
  }

  /** Stops watching. The machine keeps running. */
  release(): void {
    this.#watch[Symbol.dispose]()
  }

  /** Call when the pod is known to be gone. */
  markGone(reason: string): void {
    if (this.endReason !== undefined) return
    this.endReason = reason
    this.release()
    this.#settle()
  }

  async connect(): Promise<Duplex> {
    return this.#options.link.connect(this.address(), podProtocols.agent).catch((error: Error) => this.#refuse(error))
  }

  async connectEgress(): Promise<Duplex> {
    return this.#options.link.connect(this.address(), podProtocols.egress).catch((error: Error) => this.#refuse(error))
  }

  /** Sends a request to the first process of its container. */
  ask(request: string, body?: string): Promise<string> {
    return this.#options.link.ask(this.address(), request, body)
  }

  /** Throws when the machine is gone or does not exist yet. */
  address(): PodAddress {
    const host = this.#pod?.status?.podIP
    if (this.endReason !== undefined || !host) throw goneError(this.id, this.endReason)
    return { machineId: this.id, host }
  }

  get #pod() {
    const pod = this.#options.cache.get(podName(this.id))
    return pod?.metadata?.uid === this.#options.uid ? pod : undefined
  }

  #look(): void {
    const pod = this.#pod
    if (!pod) {
      // A new pod is not in the cache yet.
      if (this.#isSeen) this.markGone('its pod was deleted')
      return
    }
    this.#isSeen = true
    const state = podState(pod)
    if (state.state === 'ended') this.markGone(state.reason)
  }

  #refuse(error: Error): never {
    if (this.endReason !== undefined) throw goneError(this.id, this.endReason)
    throw error
  }
}

function goneError(id: MachineId, reason: string | undefined): Error {
  return Object.assign(new Error(`the machine ${id} is gone${reason ? `: ${reason}` : ''}`), {
    code: 'ECONNREFUSED',
  })
}
