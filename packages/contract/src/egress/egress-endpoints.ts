import { z } from 'zod'
import { defineEndpoint } from '../endpoint.ts'
import { EgressProxy, EgressSettings } from './egress-settings.ts'

/** Raised with every change that an older server or egress would misread. */
export const egressContractVersion = 5

const tag = 'Egress'

/** The host-wide rules. The server sends them after every start of either side, before any machine. */
export const EgressPolicy = z.object({
  /** Host, `host:port`, address, `address:port` or CIDR that sessions may reach besides public addresses. */
  allow: z.array(z.string()),
  /** `address:port` or `host:port` of berth itself: sessions reach it only where `allow` names exactly this port. */
  own_addresses: z.array(z.string()),
  /**
   * The unix socket on which the server takes what sessions connect to at those addresses, and serves each its own
   * session alone (`own-session.ts`). Absent: they are refused.
   */
  own_session_socket: z.string().optional(),
})
export type EgressPolicy = z.infer<typeof EgressPolicy>

/** How one machine reaches the world. */
export const EgressRoute = z.object({
  /** The unix socket on which egress listens for this machine; its folder exists. */
  socket_path: z.string(),
  /** File mode of the socket: the machine may run under another user. */
  socket_mode: z.int().default(0o600),
  settings: EgressSettings,
  /**
   * Lets connections end that would now leave otherwise, instead of cutting them: of a session that was just created,
   * and whose start page still comes as it began.
   */
  gently: z
    .object({
      /** `host:port`: a connection to it is waited for, a moment long, before the change. */
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

/** Starts to serve a machine, or changes its route in place. Open connections stay, but for those that would now leave otherwise. */
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

/** Cuts every connection of the machine and removes its socket. An unknown machine is fine. */
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
  /** Asked for through the proxy. Absent: a tunnel is opened, and nothing sent into it. */
  url: z.string().optional(),
  /** Whether a URL must lead to an address that sessions may connect to. */
  must_be_permitted: z.boolean(),
})
export type EgressProbe = z.infer<typeof EgressProbe>

export const EgressProbeResult = z.discriminatedUnion('outcome', [
  z.object({ outcome: z.literal('reached'), latency_ms: z.number(), ip_address: z.string().optional() }),
  z.object({ outcome: z.literal('failed'), failure: z.string() }),
  z.object({ outcome: z.literal('not_permitted') }),
])
export type EgressProbeResult = z.infer<typeof EgressProbeResult>

/** Tries a proxy out, within 15 seconds. */
export const postEgressProbe = defineEndpoint({
  operationId: 'postEgressProbe',
  method: 'POST',
  path: '/probes',
  summary: 'Try a proxy out',
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
  summary: 'What egress serves',
  tag,
  access: 'internal',
  reply: z.object({
    contract_version: z.int(),
    /** Tells one build of egress from another, so that a new server replaces an old egress. */
    build: z.string(),
    machines: z.array(z.string()),
  }),
  status: 200,
  errors: [],
})

/** Ends egress: it lets go of its machines, answers, and is gone a moment later. */
export const postEgressEnd = defineEndpoint({
  operationId: 'postEgressEnd',
  method: 'POST',
  path: '/end',
  summary: 'End egress',
  tag,
  access: 'internal',
  status: 204,
  errors: [],
})

/** `GET` holds an empty answer open for as long as egress lives: its end tells the server that egress has gone. */
export const egressLifelinePath = '/lifeline'
