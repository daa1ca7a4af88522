import type { MachineId } from '@berth/contract/common/ids.ts'
import type { EgressProbe, EgressProbeResult } from '@berth/contract/egress/egress-endpoints.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import type { Machine } from '../drivers/driver.ts'

export type RoutedMachine = Pick<Machine, 'id' | 'egressSocket'>

/** Lets what is open by another route end, after a request to `afterRequestTo` was waited for. */
export interface GentleChange {
  readonly afterRequestTo: string | undefined
}

/** The egress of this host: the only way out of its machines, beside whatever driver runs them. */
export interface EgressLink {
  /** Opens the route of a machine. One that is open is told again, so that a later egress serves it too. */
  openRoute(machine: RoutedMachine, settings: EgressSettings): Promise<void>
  /** Also of a machine that has none. */
  closeRoute(machineId: MachineId): Promise<void>
  /** The machines that egress serves, whichever server has opened their routes. */
  listRoutes(): Promise<readonly MachineId[]>
  /**
   * Changes how an open route leaves; `session_unreachable` when there is none. Resolves when the change is in force:
   * what is open by another route is cut then, unless the change is gentle.
   */
  setSettings(machineId: MachineId, settings: EgressSettings, gently?: GentleChange): Promise<void>
  /** Checks a proxy. */
  probe(probe: EgressProbe): Promise<EgressProbeResult>
}
