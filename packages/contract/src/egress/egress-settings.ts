import { z } from 'zod'

/** The protocol between egress and a proxy. */
export const ProxyProtocol = z.enum(['http', 'https', 'socks5'])
export type ProxyProtocol = z.infer<typeof ProxyProtocol>

/** One proxy server. Its credentials are sent only over the control socket and stay in the memory of egress. */
export const Upstream = z.object({
  protocol: ProxyProtocol,
  host: z.string(),
  port: z.int(),
  username: z.string().optional(),
  password: z.string().optional(),
  /** PEM certificates to trust for its TLS, in addition to the default ones. */
  ca_bundle: z.string().optional(),
})
export type Upstream = z.infer<typeof Upstream>

/** A proxy. Each connection uses one of its servers. */
export const EgressProxy = z.object({
  upstreams: z.array(Upstream).min(1),
  /** Host patterns that are reached without it. */
  bypass_hosts: z.array(z.string()),
  /** Set for the operator's proxies. They may have any address, and must not be used to reach internal addresses. */
  is_operators: z.boolean(),
})
export type EgressProxy = z.infer<typeof EgressProxy>

/** How the connections of a machine are routed. */
export const EgressSettings = z.object({
  /**
   * The session of the machine: the only one that it can reach at berth's own addresses. When absent, it can reach
   * none.
   */
  session_id: z.string().optional(),
  /** When absent, connections are direct. Null permits none, because the proxy was deleted. */
  proxy: EgressProxy.nullable().optional(),
  /** Destinations that are reached without any proxy, if the guard permits them. */
  private_hosts: z.array(z.string()),
  /** Null replaces a deleted proxy: matching destinations get no connection. */
  routes: z.array(z.object({ hosts: z.array(z.string()), proxy: EgressProxy.nullable() })),
  /** When set, only these hosts and private hosts are reachable. */
  allowed_hosts: z.array(z.string()).optional(),
})
export type EgressSettings = z.infer<typeof EgressSettings>
