import type { SessionId } from '@berth/contract/common/ids.ts'
import type { EgressProbe, EgressProbeResult } from '@berth/contract/egress/egress-endpoints.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'

/** The functions of egress that features use. */
export interface EgressLink {
  /**
   * Changes the egress settings of a session. Resolves when they are in effect, and connections that would leave
   * differently have been closed. With `gently` those end by themselves, and the change first waits for a request to
   * `afterRequestTo`.
   */
  setSettings(
    sessionId: SessionId,
    settings: EgressSettings,
    gently?: { readonly afterRequestTo: string | undefined },
  ): Promise<void>
  /** Checks a proxy. */
  probe(probe: EgressProbe): Promise<EgressProbeResult>
}
