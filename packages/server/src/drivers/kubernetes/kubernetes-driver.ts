import { setTimeout as delay } from 'node:timers/promises'
import { getAgentState } from '@berth/contract/agent/agent-endpoints.ts'
import type { MachineId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { KeyedQueue } from '@berth/runtime/async/keyed-queue.ts'
import { SingleFlight } from '@berth/runtime/async/single-flight.ts'
import { callAgent } from '../../agent-link/agent-client.ts'
import type { ChromePolicies, Driver, DriverCapabilities, FreeRoom, Machine, MachineSpec } from '../driver.ts'
import { MachineStarts } from '../machine-starts.ts'
import type { Cluster } from './cluster.ts'
import type { IdentityRenewal } from './identity-renewal.ts'
import { containerNames, podName } from './machine-pod.ts'
import { PodMachine } from './pod-machine.ts'
import { type PodState, podState } from './pod-state.ts'

const lastLineCount = 20
const memoryKillsTtlMilliseconds = 20_000
const healthyTtlMilliseconds = 60_000
/** The maximum time that an available node needs to end a pod. */
const removalLimitMilliseconds = 15_000
const retryMilliseconds = 50

/** Machines that are pods. They survive every server, and every server of the installation can reach all of them. */
export class KubernetesDriver implements Driver {
  readonly name = 'kubernetes'
  readonly capabilities: DriverCapabilities = {
    canFreeze: true,
    canLimit: true,
    hasGpu: false,
    areMachinesShared: true,
  }
  readonly #cluster: Cluster
  readonly #renewal: IdentityRenewal
  readonly #pendingMilliseconds: number
  /** The machines that this server has started or found. */
  readonly #machines = new Map<MachineId, PodMachine>()
  readonly #starts = new MachineStarts()
  readonly #stops = new SingleFlight<MachineId, void>()
  readonly #policyChanges = new KeyedQueue<MachineId>()
  readonly #memoryKills = new Map<MachineId, { readonly count: number; readonly at: number }>()
  #healthyUntil = 0

  constructor(cluster: Cluster, renewal: IdentityRenewal, pendingSeconds: number) {
    this.#cluster = cluster
    this.#renewal = renewal
    this.#pendingMilliseconds = pendingSeconds * 1_000
  }

  /** Detaches from all machines. They keep running. */
  close(): void {
    this.#renewal.close()
    for (const machine of this.#machines.values()) machine.release()
    void this.#cluster.close()
  }

  async problem(): Promise<string | undefined> {
    if (performance.now() < this.#healthyUntil) return undefined
    const problem = await this.#cluster.findProblem()
    if (problem === undefined) this.#healthyUntil = performance.now() + healthyTtlMilliseconds
    return problem
  }

  /** The cluster places machines, and may add nodes for them. */
  async freeRoom(): Promise<FreeRoom | undefined> {
    return undefined
  }

  start(spec: MachineSpec, signal: AbortSignal): Promise<Machine> {
    return this.#starts.run(spec.id, signal, (either) => this.#startOrRemove(spec, either))
  }

  async #startOrRemove(spec: MachineSpec, signal: AbortSignal): Promise<Machine> {
    // The creator of the secret owns the machine: another start with the same id fails here and leaves the first one
    // alone.
    await this.#cluster.createSecret(spec)
    try {
      signal.throwIfAborted()
      const uid = await this.#cluster.createPod(spec)
      const machine = this.#take(spec.id, uid)
      await Promise.all([this.#cluster.giveSecretToPod(spec.id, uid), this.#untilRunning(machine, signal)])
      await firstAnswer(machine, signal)
      return machine
    } catch (error) {
      const lines = signal.aborted || error instanceof BerthError ? '' : await this.lastLines(spec.id)
      await this.#remove(spec.id)
      signal.throwIfAborted()
      if (error instanceof BerthError) throw error
      throw new Error(`the machine did not start: ${[(error as Error).message, lines].join('\n').trim()}`, {
        cause: error,
      })
    }
  }

  /** Throws `capacity_exhausted` with the scheduler's reason when there is no room for the machine. */
  async #untilRunning(machine: PodMachine, signal: AbortSignal): Promise<void> {
    const name = podName(machine.id)
    let pendingUntil: number | undefined
    for (;;) {
      signal.throwIfAborted()
      const pod = this.#cluster.cache.get(name)
      const state: PodState = pod ? podState(pod) : { state: 'starting' }
      if (machine.endReason !== undefined && state.state !== 'ended') throw new Error(machine.endReason)
      if (state.state === 'running') return
      if (state.state === 'ended') {
        if (state.isLackOfRoom) throw new BerthError('capacity_exhausted', { reason: state.reason })
        throw new Error(state.reason)
      }
      if (state.state === 'pending') pendingUntil ??= performance.now() + this.#pendingMilliseconds
      else pendingUntil = undefined
      const left = pendingUntil === undefined ? undefined : pendingUntil - performance.now()
      if (state.state === 'pending' && left !== undefined && left <= 0) {
        throw new BerthError('capacity_exhausted', { reason: state.reason })
      }
      const limit = left === undefined ? signal : AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(left))])
      await this.#cluster.cache.nextChange(name, limit).catch(() => {})
    }
  }

  stop(machineId: MachineId): Promise<void> {
    return this.#stops.run(machineId, async () => {
      await this.#starts.cancel(machineId)
      await this.#remove(machineId)
    })
  }

  async #remove(machineId: MachineId): Promise<void> {
    const machine = this.#machines.get(machineId)
    // Before the pod is gone: otherwise the cluster removes the secret later, with three requests of its own.
    await Promise.all([
      this.#cluster.deletePod(machineId, removalLimitMilliseconds),
      this.#cluster.deleteSecret(machineId),
    ])
    machine?.markGone('it was stopped')
    this.#machines.delete(machineId)
    this.#memoryKills.delete(machineId)
  }

  async lastLines(machineId: MachineId): Promise<string> {
    const lines = await this.#cluster.readLog(machineId, containerNames.machine, lastLineCount)
    return [this.#machines.get(machineId)?.endReason, lines].filter(Boolean).join('\n')
  }

  /** Called every few seconds for each machine, so a new connection for each call would be too expensive. */
  async countMemoryKills(machineId: MachineId): Promise<number> {
    const machine = await this.adopt(machineId)
    const known = this.#memoryKills.get(machineId)
    if (!machine) return 0
    if (machine.endReason?.startsWith('OOMKilled')) return Math.max(1, known?.count ?? 0)
    if (machine.endReason !== undefined) return known?.count ?? 0
    if (known && performance.now() - known.at < memoryKillsTtlMilliseconds) return known.count
    const count = await machine.ask('memory-kills').then(Number, () => known?.count ?? 0)
    this.#memoryKills.set(machineId, { count, at: performance.now() })
    return count
  }

  changePolicies(machineId: MachineId, change: (policies: ChromePolicies) => ChromePolicies): Promise<ChromePolicies> {
    return this.#policyChanges.run(machineId, async () => {
      const machine = await this.#get(machineId)
      const before = JSON.parse(await machine.ask('policies')) as ChromePolicies
      const after = JSON.stringify(change(before))
      await machine.ask(`policies ${Buffer.byteLength(after)}`, after)
      return before
    })
  }

  /** Not supported for pods. */
  async lowerPriority(): Promise<void> {}

  raisePriority(machineId: MachineId): Promise<void> {
    return this.#cluster.raiseRequests(machineId)
  }

  async programVersion(): Promise<string> {
    return this.#cluster.image
  }

  async freeze(machineId: MachineId): Promise<void> {
    await (await this.#get(machineId)).ask('freeze')
  }

  async thaw(machineId: MachineId): Promise<void> {
    await (await this.#get(machineId)).ask('thaw')
  }

  /** The kernels of the nodes reclaim what they need. */
  async reclaimMemory(): Promise<number> {
    return 0
  }

  async isFrozen(machineId: MachineId): Promise<boolean> {
    const machine = await this.adopt(machineId)
    if (!machine || machine.endReason !== undefined) return false
    return (await machine.ask('state')) === 'frozen'
  }

  list(): Promise<readonly MachineId[]> {
    return this.#cluster.list()
  }

  listByServer(): Promise<ReadonlyMap<MachineId, string | undefined>> {
    return this.#cluster.listByServer()
  }

  async adopt(machineId: MachineId): Promise<PodMachine | undefined> {
    const known = this.#machines.get(machineId)
    if (known) return known
    const pod = this.#cluster.cache.get(podName(machineId)) ?? (await this.#cluster.readPod(machineId))
    if (pod?.metadata?.uid === undefined) return undefined
    return this.#machines.get(machineId) ?? this.#take(machineId, pod.metadata.uid)
  }

  async #get(machineId: MachineId): Promise<PodMachine> {
    const machine = await this.adopt(machineId)
    if (!machine) throw new Error(`there is no machine ${machineId}`)
    return machine
  }

  #take(id: MachineId, uid: string): PodMachine {
    const machine = new PodMachine({ id, uid, cache: this.#cluster.cache, link: this.#cluster.link })
    this.#machines.set(id, machine)
    return machine
  }
}

/** The gateway holds the connection until the machine's container listens. */
async function firstAnswer(machine: PodMachine, signal: AbortSignal): Promise<void> {
  const { method, path } = getAgentState
  for (;;) {
    signal.throwIfAborted()
    if (machine.endReason !== undefined) throw new Error(machine.endReason)
    try {
      const ended = machine.ended.then(() => Promise.reject(new Error(machine.endReason)))
      const response = await Promise.race([callAgent(machine, { method, path, signal }), ended])
      // Any response suffices. An endless body must not be read.
      response.destroy()
      return
    } catch (error) {
      if (signal.aborted || machine.endReason !== undefined) throw error
      // Its address may be known before the gateway listens.
      await delay(retryMilliseconds)
    }
  }
}
