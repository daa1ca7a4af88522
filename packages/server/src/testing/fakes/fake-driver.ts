import { mkdtemp, readdir, rm } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentState } from '@berth/contract/agent/agent-endpoints.ts'
import type { MachineId, SessionId } from '@berth/contract/common/ids.ts'
import type {
  ChromePolicies,
  Driver,
  DriverCapabilities,
  FreeRoom,
  Machine,
  MachineSpec,
} from '../../drivers/driver.ts'
import { connectUnixSocket } from '../../host/connect-unix-socket.ts'
import { FakeAgent } from './fake-agent.ts'
import type { FakeLogin } from './fake-login.ts'

interface FakeMachine extends Machine {
  readonly spec: MachineSpec
  readonly agent: FakeAgent
  readonly serverId: string
}

type NextStart = { readonly outcome: 'fail'; readonly error: Error } | { readonly outcome: 'hang' }

interface StartUnderWay {
  readonly cancel: AbortController
  /** Never rejects. */
  readonly settled: Promise<unknown>
}

/**
 * The host of fake machines, whose agents run in this process. It survives the drivers, like a host survives its
 * servers.
 */
export class FakeHost {
  readonly machines = new Map<MachineId, FakeMachine>()
  readonly starts = new Map<MachineId, StartUnderWay>()
  /** The machine of each session, as egress was told. */
  readonly machineOf = new Map<SessionId, MachineId>()
  readonly folder: string
  /** The first state of each new agent. */
  firstState: Partial<AgentState> = {}
  /** Whether new agents reject profile states. */
  refusesProfiles = false
  /** Handles the operations of new agents. */
  operationsOf: ((spec: MachineSpec) => RequestListener) | undefined
  readonly memoryKills = new Map<MachineId, number>()
  /** The policies of machines that were changed since their start. */
  readonly policies = new Map<MachineId, ChromePolicies>()
  problem: string | undefined
  /** Machines with low priority. */
  readonly lowPriority = new Set<MachineId>()
  programVersion = '1'
  freeRoom: FreeRoom = { memoryBytes: 2 ** 30, sessions: 3 }
  /** How new agents fetch pages. When absent, they cannot. */
  fetchPage: FakeAgent['fetchPage'] | undefined
  /** The site on which new agents log in. When absent, one without a login. */
  login: (() => FakeLogin) | undefined
  /** Runs in each start, when the session has a row but no machine yet. */
  onStart: (spec: MachineSpec) => Promise<void> = async () => {}
  /** Runs before a machine is frozen. */
  onFreeze: () => Promise<void> = async () => {}
  capabilities: DriverCapabilities = { canFreeze: true, canLimit: true, hasGpu: false, areMachinesShared: false }
  readonly #nextStarts: NextStart[] = []

  private constructor(folder: string) {
    this.folder = folder
  }

  static async open(): Promise<FakeHost> {
    return new FakeHost(await mkdtemp(join(tmpdir(), 'berth-fake-')))
  }

  /** The next start rejects with this error, or with one with this message. */
  failNextStart(failure: string | Error): void {
    this.#nextStarts.push({ outcome: 'fail', error: failure instanceof Error ? failure : new Error(failure) })
  }

  /** The next start hangs until it is aborted or stopped. */
  hangNextStart(): void {
    this.#nextStarts.push({ outcome: 'hang' })
  }

  takeNextStart(): NextStart | undefined {
    return this.#nextStarts.shift()
  }

  /** The agent of a started machine. Killing it ends the machine. */
  agentOf(id: MachineId | SessionId): FakeAgent {
    return this.#machine(id).agent
  }

  /** The specification that a machine was started with. */
  specOf(id: MachineId | SessionId): MachineSpec {
    return this.#machine(id).spec
  }

  /** Whether the machine, or the machine of the session, exists. */
  has(id: MachineId | SessionId): boolean {
    return this.#find(id) !== undefined
  }

  #machine(id: MachineId | SessionId): FakeMachine {
    const machine = this.#find(id)
    if (!machine) throw new Error(`there is no machine of ${id}`)
    return machine
  }

  #find(id: MachineId | SessionId): FakeMachine | undefined {
    return this.machines.get(this.machineOf.get(id as SessionId) ?? (id as MachineId))
  }

  async close(): Promise<void> {
    for (const { agent } of this.machines.values()) agent.kill()
    await Promise.all([...this.machines.values()].map(({ ended }) => ended))
    await rm(this.folder, { recursive: true })
  }

  async remains(): Promise<readonly string[]> {
    return [...this.machines.keys(), ...(await readdir(this.folder))]
  }
}

/** A driver whose machines are fake agents. Several drivers on one host see the same machines. */
export class FakeDriver implements Driver {
  readonly name = 'fake'
  readonly #host: FakeHost
  readonly #serverId: string

  constructor(host: FakeHost, serverId = 'test') {
    this.#host = host
    this.#serverId = serverId
  }

  get capabilities(): DriverCapabilities {
    return this.#host.capabilities
  }

  async problem(): Promise<string | undefined> {
    return this.#host.problem
  }

  async freeRoom(): Promise<FreeRoom> {
    return this.#host.freeRoom
  }

  async start(spec: MachineSpec, signal: AbortSignal): Promise<Machine> {
    signal.throwIfAborted()
    const { id } = spec
    const { machines, starts } = this.#host
    if (machines.has(id) || starts.has(id)) throw new Error(`the machine ${id} already exists`)

    const cancel = new AbortController()
    const start = this.#start(spec, AbortSignal.any([signal, cancel.signal])).finally(() => starts.delete(id))
    starts.set(id, { cancel, settled: start.catch(() => {}) })
    return start
  }

  async #start(spec: MachineSpec, signal: AbortSignal): Promise<Machine> {
    await this.#passNextStart(signal)
    await this.#host.onStart(spec)
    const machine = await this.#startAgent(spec)
    this.#host.machines.set(spec.id, machine)
    if (spec.hasLowPriority) this.#host.lowPriority.add(spec.id)
    if (signal.aborted) await this.#remove(machine)
    signal.throwIfAborted()
    return machine
  }

  async #passNextStart(signal: AbortSignal): Promise<void> {
    const next = this.#host.takeNextStart()
    if (next?.outcome === 'fail') throw next.error
    if (next?.outcome === 'hang') {
      await new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
      )
    }
  }

  async #startAgent(spec: MachineSpec): Promise<FakeMachine> {
    const { id } = spec
    const agentSocket = this.#socketOf(id)
    const agent = await FakeAgent.listen(agentSocket, this.#host.firstState)
    agent.refusesProfiles = this.#host.refusesProfiles
    if (this.#host.operationsOf) agent.operate = this.#host.operationsOf(spec)
    if (this.#host.fetchPage) agent.fetchPage = this.#host.fetchPage
    if (this.#host.login) agent.login = this.#host.login()
    const connect = () => connectUnixSocket(agentSocket)
    const egressSocket = { path: join(this.#host.folder, `${id}.egress`), mode: 0o600 }
    return { id, connect, egressSocket, ended: agent.ended, spec, agent, serverId: this.#serverId }
  }

  async stop(machineId: MachineId): Promise<void> {
    const start = this.#host.starts.get(machineId)
    start?.cancel.abort(new Error('the machine was stopped while it was starting'))
    await start?.settled
    const machine = this.#host.machines.get(machineId)
    if (machine) await this.#remove(machine)
  }

  async #remove({ id, agent }: FakeMachine): Promise<void> {
    agent.kill()
    await agent.ended
    await rm(this.#socketOf(id), { force: true })
    this.#host.machines.delete(id)
  }

  #socketOf(machineId: MachineId): string {
    return join(this.#host.folder, `${machineId}.sock`)
  }

  async lastLines(machineId: MachineId): Promise<string> {
    return this.#host.machines.has(machineId) ? `the fake machine of ${machineId}` : ''
  }

  async countMemoryKills(machineId: MachineId): Promise<number> {
    return this.#host.memoryKills.get(machineId) ?? 0
  }

  async changePolicies(
    machineId: MachineId,
    change: (policies: ChromePolicies) => ChromePolicies,
  ): Promise<ChromePolicies> {
    const before = this.#host.policies.get(machineId) ?? this.#host.specOf(machineId).chromePolicy
    this.#host.policies.set(machineId, change(before))
    return before
  }

  async lowerPriority(machineId: MachineId): Promise<void> {
    this.#host.lowPriority.add(machineId)
  }

  async raisePriority(machineId: MachineId): Promise<void> {
    this.#host.lowPriority.delete(machineId)
  }

  async programVersion(): Promise<string> {
    return this.#host.programVersion
  }

  async freeze(machineId: MachineId): Promise<void> {
    const agent = this.#host.agentOf(machineId)
    await this.#host.onFreeze()
    agent.freeze()
    agent.isFrozen = true
  }

  async thaw(machineId: MachineId): Promise<void> {
    const agent = this.#host.agentOf(machineId)
    agent.thaw()
    agent.isFrozen = false
  }

  async reclaimMemory(): Promise<number> {
    return 0
  }

  async isFrozen(machineId: MachineId): Promise<boolean> {
    return this.#host.machines.get(machineId)?.agent.isFrozen ?? false
  }

  async list(): Promise<readonly MachineId[]> {
    return [...this.#host.machines.keys()]
  }

  async listByServer(): Promise<ReadonlyMap<MachineId, string>> {
    return new Map([...this.#host.machines.values()].map(({ id, serverId }) => [id, serverId]))
  }

  async adopt(machineId: MachineId): Promise<Machine | undefined> {
    return this.#host.machines.get(machineId)
  }
}
