import type { SessionId } from '@berth/contract/common/ids.ts'
import type { EgressProbe, EgressProbeResult } from '@berth/contract/egress/egress-endpoints.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import type { EgressLink } from '../egress-link/egress-link.ts'

/** Records the calls to egress. */
export class FakeEgress implements EgressLink {
  /** The last settings of each session that were changed after its start. */
  readonly settings = new Map<SessionId, EgressSettings>()
  /** The `gently` argument of the last change of each session. */
  readonly gently = new Map<SessionId, { readonly afterRequestTo: string | undefined } | undefined>()
  readonly probes: EgressProbe[] = []
  nextResult: EgressProbeResult = { outcome: 'reached', latency_ms: 7, ip_address: '203.0.113.7' }
  /** The next change fails with this error. */
  nextFailure: Error | undefined

  async setSettings(
    sessionId: SessionId,
    settings: EgressSettings,
    gently?: { readonly afterRequestTo: string | undefined },
  ): Promise<void> {
    const failure = this.nextFailure
    this.nextFailure = undefined
    if (failure) throw failure
    this.settings.set(sessionId, settings)
    this.gently.set(sessionId, gently)
  }

  async probe(probe: EgressProbe): Promise<EgressProbeResult> {
    this.probes.push(probe)
    return this.nextResult
  }
}
