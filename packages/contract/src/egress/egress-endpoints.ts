import { z } from 'zod'
import { defineEndpoint } from '../endpoint.ts'
import { EgressProxy, EgressSettings } from './egress-settings.ts'

/** Incremented with every change that an older server or egress would misread. */
export const egressContractVersion = 5

const tag = 'Egress'

/** The rules of this host. The server sends them after every start of either side, before any machine. */
export const EgressPolicy = z.object({
  /**
   * Host, `host:port`, address, `address:port` or CIDR range that sessions may reach in addition to public addresses.
   */
  allow: z.array(z.string()),
  /**
   * `address:port` or `host:port` that berth listens on. Sessions reach it only where `allow` names exactly this port.
   */
  own_addresses: z.array(z.string()),
  /**
   * The unix socket on which the server accepts connections to those addresses and serves each session its own paths
   * only (`own-session.ts`). When absent, they are refused.
   */
  own_session_socket: z.string().optional(),
})
export type EgressPolicy = z.infer<typeof EgressPolicy>

/** The route of one machine's connections. */
export const EgressRoute = z.object({
  /** The unix socket on which egress listens for this machine. Its folder exists. */
  socket_path: z.string(),
  /** The file mode of the socket. The machine may run as another user. */
  socket_mode: z.int().default(0o600),
  settings: EgressSettings,
  /**
   * Whether connections that the change would route differently may end by themselves instead of being closed. Used for
   * a new session whose start page is still loading.
   */
  gently: z
    .object({
      /**
       * The `host:port` of a request that is just being made. The change waits a limited time for a connection to it.
       */
      after_request_to: z.string().optional(),
    })
    .optional(),
})
export type EgressRoute = z.infer<typeof EgressRoute>

export const putEgressPolicy = defineEndpoint({
  operationId: 'putEgressPolicy',
  method: 'PUT',
  path: '/policy',
  summary: 'Set the host-wide rules',
  tag,
  access: 'internal',
  body: EgressPolicy,
  status: 204,
  errors: [],
})

/**
 * Starts serving a machine or changes its route. Connections that would now be routed differently are closed; the
 * others stay open.
 */
export const putEgressMachine = defineEndpoint({
  operationId: 'putEgressMachine',
  method: 'PUT',
  path: '/machines/{machine_id}',
  summary: 'Serve a machine',
  tag,
  access: 'internal',
  params: z.object({ machine_id: z.string() }),
  body: EgressRoute,
  status: 204,
  errors: [],
})

/** Closes every connection of the machine and removes its socket. Succeeds for an unknown machine. */
export const deleteEgressMachine = defineEndpoint({
  operationId: 'deleteEgressMachine',
  method: 'DELETE',
  path: '/machines/{machine_id}',
  summary: 'Stop serving a machine',
  tag,
  access: 'internal',
  params: z.object({ machine_id: z.string() }),
  status: 204,
  errors: [],
})

export const EgressProbe = z.object({
  proxy: EgressProxy,
  /** The URL to request through the proxy. When absent, a tunnel is opened and nothing is sent through it. */
  url: z.string().optional(),
  /** Whether the URL must lead to an address that sessions may connect to. */
  must_be_permitted: z.boolean(),
})
export type EgressProbe = z.infer<typeof EgressProbe>

export const EgressProbeResult = z.discriminatedUnion('outcome', [
  z.object({ outcome: z.literal('reached'), latency_ms: z.number(), ip_address: z.string().optional() }),
  z.object({ outcome: z.literal('failed'), failure: z.string() }),
  z.object({ outcome: z.literal('not_permitted') }),
])
export type EgressProbeResult = z.infer<typeof EgressProbeResult>

/** Checks a proxy within 15 seconds. */
export const postEgressProbe = defineEndpoint({
  operationId: 'postEgressProbe',
  method: 'POST',
  path: '/probes',
  summary: 'Check a proxy in egress',
  tag,
  access: 'internal',
  body: EgressProbe,
  reply: EgressProbeResult,
  status: 200,
  errors: [],
})

export const getEgressState = defineEndpoint({
  operationId: 'getEgressState',
  method: 'GET',
  path: '/state',
  summary: 'Get the state of egress',
  tag,
  access: 'internal',
  reply: z.object({
    contract_version: z.int(),
    /** Distinguishes builds of egress, so that a new server replaces an old egress. */
    build: z.string(),
    machines: z.array(z.string()),
  }),
  status: 200,
  errors: [],
})

/** Stops egress. It closes its machines, responds and exits shortly after. */
export const postEgressEnd = defineEndpoint({
  operationId: 'postEgressEnd',
  method: 'POST',
  path: '/end',
  summary: 'Stop egress',
  tag,
  access: 'internal',
  status: 204,
  errors: [],
})

/** `GET` keeps a response open while egress runs. Its end tells the server that egress has exited. */
export const egressLifelinePath = '/lifeline'
