import type { SessionId } from '@berth/contract/common/ids.ts'
import type { EgressProbe, EgressProbeResult } from '@berth/contract/egress/egress-endpoints.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'

/** What features ask of the egress of this host. */
export interface EgressLink {
  /**
   * Changes by which way a session leaves. Resolves when it has; what is open by another way is cut then. `gently`
   * lets it end, after a request to `afterRequestTo` was waited for.
   */
  setSettings(
    sessionId: SessionId,
    settings: EgressSettings,
    gently?: { readonly afterRequestTo: string | undefined },
  ): Promise<void>
  /** Tries a proxy out. */
  probe(probe: EgressProbe): Promise<EgressProbeResult>
}
