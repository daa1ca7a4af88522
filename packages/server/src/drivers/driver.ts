import type { Duplex } from 'node:stream'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import type { BrowserMemory } from '@berth/contract/browsers/browser.ts'
import type { MachineId } from '@berth/contract/common/ids.ts'

/** Chromium's policies by name. */
export type ChromePolicies = Readonly<Record<string, unknown>>

/** What a machine is started with. */
export interface MachineSpec {
  readonly id: MachineId
  /** For an app: without a browser, but with the programs that install and run apps. */
  readonly isApp?: boolean
  readonly headless: boolean
  readonly stealth: boolean
  /** Whether the server can solve captchas of its pages. */
  readonly solvesCaptchas?: boolean
  readonly gpu: boolean
  readonly memory: BrowserMemory
  /** The initial settings of the browser. All of them can be changed while the machine runs. */
  readonly kioskMode: boolean
  readonly viewport: AgentConfig['viewport']
  readonly chromePolicy: ChromePolicies
  /** The agent does not launch the browser until it has the state of a profile. */
  readonly awaitsProfile: boolean
  /** The agent does not launch the browser until it has its extensions. */
  readonly awaitsExtensions: boolean
  /** Whether the machine gets processor time only when others leave some, until `raisePriority`. */
  readonly hasLowPriority?: boolean
}

/** A unix socket where egress should listen. */
export interface EgressSocket {
  readonly path: string
  /** The machine may run as another user than egress. */
  readonly mode: number
}

/** A machine with an agent. It may exist before its session, and it runs at most one session. */
export interface Machine {
  readonly id: MachineId
  /**
   * Opens a connection to the machine's agent. Returns it immediately; the connection waits until the agent accepts it.
   * Rejects with `ENOENT` or `ECONNREFUSED` when the machine is gone. The caller closes the connection and handles its
   * errors.
   */
  connect(): Promise<Duplex>
  /** Where the machine expects egress. The code that provisions the machine makes egress listen there. */
  readonly egressSocket: EgressSocket
  /** Settles when the machine is gone, however it ended. Never rejects. */
  readonly ended: Promise<void>
  /** Why it is gone, if the driver was told, e.g. an eviction. */
  readonly endReason?: string | undefined
}

/** A machine, for code that only communicates with its agent. */
export type ReachableMachine = Pick<Machine, 'connect'>

/** What a driver can do. Callers check the capability, never the driver's name. */
export interface DriverCapabilities {
  readonly canFreeze: boolean
  /** Whether memory and process limits are enforced. */
  readonly canLimit: boolean
  readonly hasGpu: boolean
  /** Whether every server of the database can reach every machine, so that a session can move between servers. */
  readonly areMachinesShared: boolean
}

/** An estimate of the capacity for new machines, for choosing between servers. */
export interface FreeRoom {
  readonly memoryBytes: number
  readonly sessions: number
}

/** Starts and stops machines of one kind. */
export interface Driver {
  readonly name: string
  readonly capabilities: DriverCapabilities

  /** Describes what prevents this driver from starting machines, if anything. */
  problem(): Promise<string | undefined>

  /** Undefined when the driver does not know. */
  freeRoom(): Promise<FreeRoom | undefined>

  /**
   * Starts a machine and resolves when its agent can be reached, long before its browser is ready. After a rejection or
   * an abort, nothing of the machine is left. Rejects with `capacity_exhausted` when there is no room for another
   * machine.
   */
  start(spec: MachineSpec, signal: AbortSignal): Promise<Machine>

  /** Stops a machine immediately and removes all of it. Succeeds for an unknown machine. */
  stop(machineId: MachineId): Promise<void>

  /** The last lines that the machine wrote, to explain a failure. Empty for an unknown machine. */
  lastLines(machineId: MachineId): Promise<string>

  /** How many processes of the machine were killed because of its memory limit. 0 for an unknown machine. */
  countMemoryKills(machineId: MachineId): Promise<number>

  /**
   * Changes the policies of a running machine's browser, which applies them within seconds or with its next launch.
   * Resolves with the previous ones. Nothing in the machine can change them.
   */
  changePolicies(machineId: MachineId, change: (policies: ChromePolicies) => ChromePolicies): Promise<ChromePolicies>

  /**
   * Until `raisePriority`, the machine runs only while nothing else on the host needs the processor, if the host
   * supports it.
   */
  lowerPriority(machineId: MachineId): Promise<void>

  /** Gives the machine the same share of the processor as others. */
  raisePriority(machineId: MachineId): Promise<void>

  /** Changes when the programs of machines change: machines that were started before run older ones. */
  programVersion(): Promise<string>

  /** Pauses everything in a machine without losing its memory. Resolves when nothing of it runs. */
  freeze(machineId: MachineId): Promise<void>
  /** Resumes a machine. Succeeds for one that runs. */
  thaw(machineId: MachineId): Promise<void>
  /**
   * Returns memory of a frozen machine to the host, if that is supported, and resolves with the number of bytes. May
   * take seconds; the machine can be thawed meanwhile.
   */
  reclaimMemory(machineId: MachineId): Promise<number>
  /** Asks the system, like `list`. */
  isFrozen(machineId: MachineId): Promise<boolean>

  /**
   * Lists every machine that exists, whichever server started it, without side effects. Asks the system instead of a
   * record of ours, so that it is correct after a crash at any point. Includes remains of dead machines.
   */
  list(): Promise<readonly MachineId[]>

  /** Like `list`, for shared machines: with the server that started each, if that is known. */
  listByServer?(): Promise<ReadonlyMap<MachineId, string | undefined>>

  /**
   * Adopts a machine that an earlier server started. Returns undefined if there is none. For a dead machine, `ended` is
   * already settled.
   */
  adopt(machineId: MachineId): Promise<Machine | undefined>
}
