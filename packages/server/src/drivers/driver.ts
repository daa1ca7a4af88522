import type { Duplex } from 'node:stream'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import type { BrowserMemory } from '@berth/contract/browsers/browser.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'

/** Chromium's policies by their names. */
export type ChromePolicies = Readonly<Record<string, unknown>>

/** What a machine is started with. */
export interface MachineSpec {
  readonly sessionId: SessionId
  readonly headless: boolean
  readonly stealth: boolean
  readonly gpu: boolean
  readonly kioskMode: boolean
  readonly viewport: AgentConfig['viewport']
  readonly memory: BrowserMemory
  readonly startUrl: string | undefined
  /** The agent launches the browser when it has been given the state of a profile. */
  readonly awaitsProfile: boolean
  readonly chromePolicy: ChromePolicies
  /** Whether the browser starts only when its extensions have been given to the agent. */
  readonly awaitsExtensions: boolean
}

/** A running machine. It is addressed by its session: a session has one machine, and a machine one session. */
export interface Machine {
  readonly sessionId: SessionId
  /**
   * Opens a connection to the machine's agent. It is there at once, and waits until the agent takes it. Rejects with
   * `ENOENT` or `ECONNREFUSED` when the machine has gone. Whoever asks for it closes it, and hears its errors.
   */
  connect(): Promise<Duplex>
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
}

/** Starts and stops machines of one kind. */
export interface Driver {
  readonly name: string
  readonly capabilities: DriverCapabilities

  /** Names what stops this driver from starting machines, or nothing. */
  problem(): Promise<string | undefined>

  /**
   * Starts a machine and resolves as soon as its agent can be reached, long before its browser is ready.
   * After a rejection, or an abort, nothing of the machine is left. Where there is no room for another machine it is
   * rejected with `capacity_exhausted`.
   */
  start(spec: MachineSpec, signal: AbortSignal): Promise<Machine>

  /** Ends a machine at once and removes all of it. An unknown machine is fine: stopping twice is not an error. */
  stop(sessionId: SessionId): Promise<void>

  /** The last lines that the machine wrote, to explain a failure. Empty for an unknown machine. */
  lastLines(sessionId: SessionId): Promise<string>

  /** How many processes of the machine were ended because it had reached its memory limit. 0 for an unknown machine. */
  countMemoryKills(sessionId: SessionId): Promise<number>

  /**
   * Changes the policies of a running machine's browser, which takes them up within seconds or with its next launch.
   * Resolves with those from before. Nothing in the machine can change them.
   */
  changePolicies(sessionId: SessionId, change: (policies: ChromePolicies) => ChromePolicies): Promise<ChromePolicies>

  freeze(sessionId: SessionId): Promise<void>
  thaw(sessionId: SessionId): Promise<void>

  /**
   * Every machine that exists, whoever started it: what a restarted server adopts or ends. Asks the system, not a
   * record of ours, so that a crash at any point is seen. Remains of dead machines are listed too (`ended` is settled).
   */
  list(): Promise<readonly Machine[]>
}
