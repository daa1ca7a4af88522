import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentState } from '@berth/contract/agent/agent-endpoints.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import type { ChromePolicies, Driver, DriverCapabilities, Machine, MachineSpec } from '../drivers/driver.ts'
import { FakeAgent } from './fake-agent.ts'

interface FakeMachine extends Machine {
  readonly spec: MachineSpec
  readonly agent: FakeAgent
}

type NextStart = { readonly outcome: 'fail'; readonly error: Error } | { readonly outcome: 'hang' }

interface StartUnderWay {
  readonly cancel: AbortController
  /** Never rejects. */
  readonly settled: Promise<unknown>
}

/** The host of fake machines, which are agents in this process. It outlives the drivers, as a host outlives servers. */
export class FakeHost {
  readonly machines = new Map<SessionId, FakeMachine>()
  readonly starts = new Map<SessionId, StartUnderWay>()
  readonly folder: string
  /** The first state of each new agent. */
  firstState: Partial<AgentState> = {}
  /** Whether new agents reject profile states. */
  refusesProfiles = false
  readonly memoryKills = new Map<SessionId, number>()
  /** The policies of machines that were changed since their start. */
  readonly policies = new Map<SessionId, ChromePolicies>()
  problem: string | undefined
  /** Runs in each start, when the session is known and its machine does not exist yet. */
  onStart: (spec: MachineSpec) => Promise<void> = async () => {}
  capabilities: DriverCapabilities = { canFreeze: true, canLimit: true, hasGpu: false }
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
  agentOf(sessionId: SessionId): FakeAgent {
    return this.#machine(sessionId).agent
  }

  /** The specification that a machine was started with. */
  specOf(sessionId: SessionId): MachineSpec {
    return this.#machine(sessionId).spec
  }

  #machine(sessionId: SessionId): FakeMachine {
    const machine = this.machines.get(sessionId)
    if (!machine) throw new Error(`there is no machine of session ${sessionId}`)
    return machine
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

  constructor(host: FakeHost) {
    this.#host = host
  }

  get capabilities(): DriverCapabilities {
    return this.#host.capabilities
  }

  async problem(): Promise<string | undefined> {
    return this.#host.problem
  }

  async start(spec: MachineSpec, signal: AbortSignal): Promise<Machine> {
    signal.throwIfAborted()
    const { sessionId } = spec
    const { machines, starts } = this.#host
    if (machines.has(sessionId) || starts.has(sessionId)) throw new Error(`session ${sessionId} has a machine`)

    const cancel = new AbortController()
    const start = this.#start(spec, AbortSignal.any([signal, cancel.signal])).finally(() => starts.delete(sessionId))
    starts.set(sessionId, { cancel, settled: start.catch(() => {}) })
    return start
  }

  async #start(spec: MachineSpec, signal: AbortSignal): Promise<Machine> {
    await this.#passNextStart(signal)
    await this.#host.onStart(spec)
    const machine = await this.#startAgent(spec)
    this.#host.machines.set(spec.sessionId, machine)
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
    const { sessionId } = spec
    const agentSocket = join(this.#host.folder, `${sessionId}.sock`)
    const agent = await FakeAgent.listen(agentSocket, this.#host.firstState)
    agent.refusesProfiles = this.#host.refusesProfiles
    return { sessionId, agentSocket, ended: agent.ended, spec, agent }
  }

  async stop(sessionId: SessionId): Promise<void> {
    const start = this.#host.starts.get(sessionId)
    start?.cancel.abort(new Error('the machine was stopped while it was starting'))
    await start?.settled
    const machine = this.#host.machines.get(sessionId)
    if (machine) await this.#remove(machine)
  }

  async #remove({ sessionId, agent, agentSocket }: FakeMachine): Promise<void> {
    agent.kill()
    await agent.ended
    await rm(agentSocket, { force: true })
    this.#host.machines.delete(sessionId)
  }

  async lastLines(sessionId: SessionId): Promise<string> {
    return this.#host.machines.has(sessionId) ? `the fake machine of ${sessionId}` : ''
  }

  async countMemoryKills(sessionId: SessionId): Promise<number> {
    return this.#host.memoryKills.get(sessionId) ?? 0
  }

  async changePolicies(
    sessionId: SessionId,
    change: (policies: ChromePolicies) => ChromePolicies,
  ): Promise<ChromePolicies> {
    const before = this.#host.policies.get(sessionId) ?? this.#host.specOf(sessionId).chromePolicy
    this.#host.policies.set(sessionId, change(before))
    return before
  }

  async freeze(sessionId: SessionId): Promise<void> {
    this.#host.agentOf(sessionId).freeze()
  }

  async thaw(sessionId: SessionId): Promise<void> {
    this.#host.agentOf(sessionId).thaw()
  }

  async list(): Promise<readonly Machine[]> {
    return [...this.#host.machines.values()]
  }
}
