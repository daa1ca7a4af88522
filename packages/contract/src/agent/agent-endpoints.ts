import { z } from 'zod'
import { BrowserViewport } from '../browsers/viewport.ts'
import { defineEndpoint } from '../endpoint.ts'
import {
  agentContractVersion,
  agentNavigationPath,
  agentStatePath,
  agentStopPath,
  agentViewportPath,
} from './agent-protocol.ts'

export {
  agentContractVersion,
  agentDiscoveryPath,
  agentEventsPath,
  agentProfilePath,
} from './agent-protocol.ts'

const tag = 'Agent'

/** The configuration of an agent. The driver writes it to a file that the agent reads once. */
export const AgentConfig = z.object({
  contract_version: z.literal(agentContractVersion),
  session_id: z.string(),
  headless: z.boolean(),
  stealth: z.boolean(),
  gpu: z.boolean(),
  kiosk_mode: z.boolean(),
  viewport: BrowserViewport.required(),
  start_url: z.string().optional(),
  /** Chromium is not launched before the state of a profile has arrived. */
  awaits_profile: z.boolean().default(false),
  /** Chromium is not launched before its first extensions have arrived. */
  awaits_extensions: z.boolean().default(false),
  /** Folders as the agent sees them. */
  home_folder: z.string(),
  /** Contains sockets that only this machine uses: display, VNC. */
  run_folder: z.string(),
  /** Unix socket of egress, the machine's only connection to other networks. */
  egress_socket: z.string(),
  chromium_path: z.string(),
})
export type AgentConfig = z.infer<typeof AgentConfig>

/** Programs that the agent keeps running. */
export const ServiceName = z.enum(['chromium', 'display'])
export type ServiceName = z.infer<typeof ServiceName>

export const AgentState = z.object({
  contract_version: z.int(),
  /**
   * `starting`: the first page has not responded yet. `failed`: it will not; `failure` gives the reason and the agent
   * exits.
   */
  state: z.enum(['starting', 'ready', 'failed']),
  failure: z.string().optional(),
  /** When the last activity ended, in milliseconds since the epoch. Null while there is activity. */
  idle_since: z.number().min(0).max(8.64e15).nullable(), // The largest value of a Date.
})
export type AgentState = z.infer<typeof AgentState>

/**
 * One line of the event stream. The first line is a `state`, and each change of state or activity adds another.
 * `service_crashed` reports a program that ended unexpectedly; the agent restarts it.
 */
export const AgentEvent = z.discriminatedUnion('event', [
  z.object({ event: z.literal('state'), ...AgentState.shape }),
  z.object({ event: z.literal('service_crashed'), service: ServiceName, detail: z.string(), at: z.number() }),
])
export type AgentEvent = z.infer<typeof AgentEvent>

/** Returns the current state immediately. */
export const getAgentState = defineEndpoint({
  operationId: 'getAgentState',
  method: 'GET',
  path: agentStatePath,
  summary: 'Get the state of the agent',
  tag,
  access: 'internal',
  reply: AgentState,
  status: 200,
  errors: [],
})

/** Closes Chromium so that it saves its state, stops the display and responds. The agent then exits. */
export const stopAgent = defineEndpoint({
  operationId: 'stopAgent',
  method: 'POST',
  path: agentStopPath,
  summary: 'End the browser and the agent',
  tag,
  access: 'internal',
  status: 204,
  errors: [],
})

/** Resizes the running browser and responds when it is done. Does nothing if the size is unchanged. */
export const setViewport = defineEndpoint({
  operationId: 'setViewport',
  method: 'POST',
  path: agentViewportPath,
  summary: 'Change the size of the browser',
  tag,
  access: 'internal',
  body: BrowserViewport.required(),
  status: 204,
  errors: [],
})

/**
 * Navigates the page that a user would see. Responds when Chromium has accepted the command, without waiting for the
 * page.
 */
export const navigateActivePage = defineEndpoint({
  operationId: 'navigateActivePage',
  method: 'POST',
  path: agentNavigationPath,
  summary: 'Navigate the active page',
  tag,
  access: 'internal',
  body: z.object({ url: z.string() }),
  status: 204,
  errors: [],
})
