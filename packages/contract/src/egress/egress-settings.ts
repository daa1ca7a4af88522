import { z } from 'zod'

/** What a proxy is spoken to with. */
export const ProxyProtocol = z.enum(['http', 'https', 'socks5'])
export type ProxyProtocol = z.infer<typeof ProxyProtocol>

/** One proxy server. Its name and password travel over the control socket alone and stay in egress' memory. */
export const Upstream = z.object({
  protocol: ProxyProtocol,
  host: z.string(),
  port: z.int(),
  username: z.string().optional(),
  password: z.string().optional(),
  /** PEM certificates that its TLS is trusted by, besides those that everybody trusts. */
  ca_bundle: z.string().optional(),
})
export type Upstream = z.infer<typeof Upstream>

/** A proxy: one of its servers is taken anew for each connection. */
export const EgressProxy = z.object({
  upstreams: z.array(Upstream).min(1),
  /** Host patterns that are reached without it. */
  bypass_hosts: z.array(z.string()),
  /** One that the operator has set up: it may stand at any address, and must not be used to reach inner ones. */
  is_operators: z.boolean(),
})
export type EgressProxy = z.infer<typeof EgressProxy>

/** How each connection of a machine leaves. */
export const EgressSettings = z.object({
  /** The session that the machine runs: at berth's own addresses it reaches this one alone. Absent: it reaches none. */
  session_id: z.string().optional(),
  /** Absent: directly. Null: not at all, because it cannot be had any more. */
  proxy: EgressProxy.nullable().optional(),
  /** What is reached without any proxy, as far as the guard permits it. */
  private_hosts: z.array(z.string()),
  /** Null in the place of a proxy that is gone: what matches gets no connection at all. */
  routes: z.array(z.object({ hosts: z.array(z.string()), proxy: EgressProxy.nullable() })),
  /** Nothing else but private hosts is reached. Absent: everything is. */
  allowed_hosts: z.array(z.string()).optional(),
})
export type EgressSettings = z.infer<typeof EgressSettings>
