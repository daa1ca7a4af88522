import type { Duplex } from 'node:stream'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import type { BrowserMemory } from '@berth/contract/browsers/browser.ts'
import type { MachineId } from '@berth/contract/common/ids.ts'

/** Chromium's policies by their names. */
export type ChromePolicies = Readonly<Record<string, unknown>>

/** What a machine is started with. */
export interface MachineSpec {
  readonly id: MachineId
  /** For an app: without a browser, and with what installs and runs apps. */
  readonly isApp?: boolean
  readonly headless: boolean
  readonly stealth: boolean
  /** The server can solve the challenges of its pages. */
  readonly solvesCaptchas?: boolean
  readonly gpu: boolean
  readonly memory: BrowserMemory
  /** What the browser begins with; all of it can be changed while the machine runs. */
  readonly kioskMode: boolean
  readonly viewport: AgentConfig['viewport']
  readonly chromePolicy: ChromePolicies
  /** The agent launches the browser when it has been given the state of a profile. */
  readonly awaitsProfile: boolean
  /** The agent launches the browser when it has been given its extensions. */
  readonly awaitsExtensions: boolean
  /** It leaves the processor to the others, until `raisePriority`. */
  readonly hasLowPriority?: boolean
}

/** A unix socket on which egress is to listen. */
export interface EgressSocket {
  readonly path: string
  /** The machine may run under another user than egress. */
  readonly mode: number
}

/** A machine with an agent. It may exist before its session, and it runs one session at most. */
export interface Machine {
  readonly id: MachineId
  /**
   * Opens a connection to the machine's agent. It is there at once, and waits until the agent takes it. Rejects with
   * `ENOENT` or `ECONNREFUSED` when the machine has gone. Whoever asks for it closes it, and hears its errors.
   */
  connect(): Promise<Duplex>
  /** Where the machine looks for egress. Whoever provisions the machine has egress listen there. */
  readonly egressSocket: EgressSocket
  /** Settles when the machine is gone, however it ended. Never rejects. */
  readonly ended: Promise<void>
}

/** A machine, to whoever only speaks to its agent. */
export type ReachableMachine = Pick<Machine, 'connect'>

/** What a kind of machine can do; callers ask for the capability and never for the driver's name. */
export interface DriverCapabilities {
  readonly canFreeze: boolean
  /** Whether memory and process limits are enforced. */
  readonly canLimit: boolean
  readonly hasGpu: boolean
  /** Whether every server of the database reaches every machine, so that a session can move from one to another. */
  readonly areMachinesShared: boolean
}

/** What new machines can take, as an estimate for whoever chooses between servers. */
export interface FreeRoom {
  readonly memoryBytes: number
  readonly sessions: number
}

/** Starts and stops machines of one kind. */
export interface Driver {
  readonly name: string
  readonly capabilities: DriverCapabilities

  /** Names what stops this driver from starting machines, or nothing. */
  problem(): Promise<string | undefined>

  /** Nothing where the driver does not know. */
  freeRoom(): Promise<FreeRoom | undefined>

  /**
   * Starts a machine and resolves as soon as its agent can be reached, long before its browser is ready.
   * After a rejection, or an abort, nothing of the machine is left. Where there is no room for another machine it is
   * rejected with `capacity_exhausted`.
   */
  start(spec: MachineSpec, signal: AbortSignal): Promise<Machine>

  /** Ends a machine at once and removes all of it. An unknown machine is fine: stopping twice is not an error. */
  stop(machineId: MachineId): Promise<void>

  /** The last lines that the machine wrote, to explain a failure. Empty for an unknown machine. */
  lastLines(machineId: MachineId): Promise<string>

  /** How many processes of the machine were ended because it had reached its memory limit. 0 for an unknown machine. */
  countMemoryKills(machineId: MachineId): Promise<number>

  /**
   * Changes the policies of a running machine's browser, which takes them up within seconds or with its next launch.
   * Resolves with those from before. Nothing in the machine can change them.
   */
  changePolicies(machineId: MachineId, change: (policies: ChromePolicies) => ChromePolicies): Promise<ChromePolicies>

  /**
   * Until `raisePriority` the machine runs only while nothing else of the host wants the processor, where the host can see
   * to that.
   */
  giveWay(machineId: MachineId): Promise<void>

  /** From now on the machine has as large a share of the processor as any. */
  raisePriority(machineId: MachineId): Promise<void>

  /** Changes when the programs have changed that machines run: those that were started before run older ones. */
  programVersion(): Promise<string>

  /** Stops everything in a machine where it is, without its memory being lost. Resolves when nothing of it runs. */
  freeze(machineId: MachineId): Promise<void>
  /** Lets a machine go on. One that runs is fine. */
  thaw(machineId: MachineId): Promise<void>
  /**
   * Gives memory of a frozen machine back to the host, where that can be done, and resolves with the number of bytes. May
   * take seconds; the machine can be thawed meanwhile.
   */
  giveBackMemory(machineId: MachineId): Promise<number>
  /** Asks the system, as `list` does. */
  isFrozen(machineId: MachineId): Promise<boolean>

  /**
   * Every machine that exists, whoever started it, and changes nothing. Asks the system, not a record of ours, so that
   * a crash at any point is seen. Remains of dead machines are listed too.
   */
  list(): Promise<readonly MachineId[]>

  /** The same, where machines are shared: which server has started each, as far as that is known. */
  listByServer?(): Promise<ReadonlyMap<MachineId, string | undefined>>

  /** Takes up a machine that an earlier server has started: nothing when there is none, and `ended` is settled for a dead one. */
  adopt(machineId: MachineId): Promise<Machine | undefined>
}
