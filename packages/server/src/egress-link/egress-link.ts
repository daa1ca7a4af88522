import type { MachineId } from '@berth/contract/common/ids.ts'
import type { EgressProbe, EgressProbeResult } from '@berth/contract/egress/egress-endpoints.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import type { Machine } from '../drivers/driver.ts'

export type RoutedMachine = Pick<Machine, 'id' | 'egressSocket'>

/** Lets connections with another route finish, after waiting for a request to `afterRequestTo`. */
export interface GentleChange {
  readonly afterRequestTo: string | undefined
}

/** The egress of machines, their only connection to other networks, whatever driver runs them. */
export interface EgressLink {
  /** Opens the route of a machine. Repeats it for a new egress process if the route is open already. */
  openRoute(machine: RoutedMachine, settings: EgressSettings): Promise<void>
  /** Succeeds for a machine without a route. */
  closeRoute(machineId: MachineId): Promise<void>
  /** The machines that egress serves, whichever server opened their routes. */
  listRoutes(): Promise<readonly MachineId[]>
  /**
   * Changes the settings of an open route. Rejects with `session_unreachable` if there is none. Resolves when the
   * change is effective: connections with another route are then closed, unless the change is gentle.
   */
  setSettings(machineId: MachineId, settings: EgressSettings, gently?: GentleChange): Promise<void>
  /** Checks a proxy. */
  probe(probe: EgressProbe): Promise<EgressProbeResult>
}
