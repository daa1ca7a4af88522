import type { MachineId, SessionId } from '@berth/contract/common/ids.ts'
import type { EgressProbe, EgressProbeResult } from '@berth/contract/egress/egress-endpoints.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import type { EgressLink, GentleChange, RoutedMachine } from '../../egress-link/egress-link.ts'

/** Records the calls to egress. It survives the servers, like egress. */
export class FakeEgress implements EgressLink {
  /** The open routes, with the settings at their last opening. */
  readonly routes = new Map<MachineId, EgressSettings>()
  /** The last settings of each session that were changed after its start. */
  readonly settings = new Map<SessionId, EgressSettings>()
  /** The `gently` argument of the last change of each session. */
  readonly gently = new Map<SessionId, GentleChange | undefined>()
  readonly probes: EgressProbe[] = []
  nextResult: EgressProbeResult = { outcome: 'reached', latency_ms: 7, ip_address: '203.0.113.7' }
  /** The next change fails with this error. */
  nextFailure: Error | undefined
  /** Called for the next opened and closed routes. */
  onOpen: (settings: EgressSettings) => Promise<void> = async () => {}
  onClose: (machineId: MachineId) => Promise<void> = async () => {}
  readonly #machineOf: Map<SessionId, MachineId>

  /** Records the machine of each session in `machineOf`. */
  constructor(machineOf: Map<SessionId, MachineId>) {
    this.#machineOf = machineOf
  }

  async openRoute({ id }: RoutedMachine, settings: EgressSettings): Promise<void> {
    await this.onOpen(settings)
    if (this.routes.has(id)) await this.setSettings(id, settings)
    this.#machineOf.set(settings.session_id as SessionId, id)
    this.routes.set(id, settings)
  }

  async closeRoute(machineId: MachineId): Promise<void> {
    await this.onClose(machineId)
    this.routes.delete(machineId)
  }

  async listRoutes(): Promise<readonly MachineId[]> {
    return [...this.routes.keys()]
  }

  async setSettings(machineId: MachineId, settings: EgressSettings, gently?: GentleChange): Promise<void> {
    const failure = this.nextFailure
    this.nextFailure = undefined
    if (failure) throw failure
    if (!this.routes.has(machineId)) throw new Error(`the machine ${machineId} has no route`)
    const sessionId = settings.session_id as SessionId
    this.settings.set(sessionId, settings)
    this.gently.set(sessionId, gently)
  }

  async probe(probe: EgressProbe): Promise<EgressProbeResult> {
    this.probes.push(probe)
    return this.nextResult
  }
}
