import { z } from 'zod'
import { defineEndpoint } from '../endpoint.ts'

/** Raised with every change that an older server or egress would misread. */
export const egressContractVersion = 1

const tag = 'Egress'

/** The host-wide rules. The server sends them after every start of either side, before any machine. */
export const EgressPolicy = z.object({
  /** Host, `host:port`, address, `address:port` or CIDR that sessions may reach besides public addresses. */
  allow: z.array(z.string()),
  /** `address:port` or `host:port` of berth itself: refused unless `allow` names exactly this port. */
  own_addresses: z.array(z.string()),
})
export type EgressPolicy = z.infer<typeof EgressPolicy>

/** How one machine reaches the world. */
export const EgressRoute = z.object({
  /** The unix socket on which egress listens for this machine; its folder exists. */
  socket_path: z.string(),
  /** File mode of the socket: the machine may run under another user. */
  socket_mode: z.int().default(0o600),
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

/** Starts to serve a machine, or changes its route in place; connections that are open stay. */
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
    pid: z.int(),
    machines: z.array(z.string()),
  }),
  status: 200,
  errors: [],
})

/** `GET` holds an empty answer open for as long as egress lives: its end tells the server that egress has gone. */
export const egressLifelinePath = '/lifeline'
