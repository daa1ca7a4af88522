import type { Upstream } from '@berth/contract/egress/egress-settings.ts'
import type { ProxyPools } from './proxy-pools.ts'

/** The operator's configuration of proxies. */
export interface ProxyingConfig {
  readonly pools: ProxyPools
  /** The default proxy of stealth sessions. When absent, they connect directly. */
  readonly stealthProxy: Upstream | undefined
  /** A URL that responds with the client's address. When absent, checks only open a tunnel. */
  readonly checkUrl: string | undefined
}
