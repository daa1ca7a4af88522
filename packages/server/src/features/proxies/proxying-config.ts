import type { Upstream } from '@berth/contract/egress/egress-settings.ts'
import type { ProxyPools } from './proxy-pools.ts'

/** What the operator has set up of proxies. */
export interface ProxyingConfig {
  readonly pools: ProxyPools
  /** The default of stealth sessions. Absent: they leave directly. */
  readonly stealthProxy: Upstream | undefined
  /** Answers with the address that it is asked from. Absent: checks only open a tunnel. */
  readonly checkUrl: string | undefined
}
